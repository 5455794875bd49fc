"""The small mechanisms that studies are tested with."""

import pytest

import rbchain as rb


@pytest.fixture
def arm():
    """Two links, without gravity along the axes."""
    return rb.Model.serial_chain(2)


@pytest.fixture
def rod():
    """One link of 1 kg and 0.5 m that hangs from its end and turns about z."""
    return rb.Model.serial_chain(1, length=0.5, mass=1.0, gravity=(0.0, -10.0, 0.0))
