"""Simulations of a few steps, in water and out of it, in both precisions, with samples that differ."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import rbchain as rb

from ..cases import cases
from ..motions import check_ends, check_events, check_same, motions, with_hazard
from ..trees import built, trees

pytestmark = pytest.mark.filterwarnings(r"ignore::RuntimeWarning:rbchain\.core")
DURATION = 0.02


@st.composite
def models(draw):
    """Strategy for models of up to three bodies, of which each resists its motion."""
    model, words = built(draw(trees(most=3)))
    assume(not words)
    return model


@cases(percent=5)
@given(models(), st.sampled_from([(), (2,), (1, 3)]), st.sampled_from([np.float64, np.float32]), st.data())
def test_every_sample_ends_in_a_status_and_leaves_the_others_alone(model, batch, dtype, data):
    if batch and data.draw(st.booleans(), label="samples differ"):
        model = model.vary(mass=model.mass * np.random.default_rng(0).uniform(0.5, 2.0, (*batch, model.n_bodies)))
    clean = motions(data.draw, model, batch, DURATION, steps=20, dtype=dtype)
    sample = data.draw(st.tuples(*(st.integers(0, size - 1) for size in batch)), label="sample")
    spoilt = with_hazard(data.draw, clean, sample)
    found, expected = spoilt.simulate(), clean.simulate()
    for motion, result in ((spoilt, found), (clean, expected)):
        check_ends(motion, result)
        check_events(result)
    others = np.ones(batch, bool)
    others[sample] = False
    check_same(found, expected, others)
    if not found.success:
        with pytest.raises(rb.SimulationError):
            spoilt._replace(settings=spoilt.settings | {"on_failure": "raise"}).simulate()
