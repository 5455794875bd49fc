"""Numbers at the limits of the floating-point range are refused by name, or affect only their own sample."""

import warnings

import numpy as np
import pytest

import rbchain as rb

from .conftest import mechanism
from .quantities import random_state

pytestmark = pytest.mark.plain_python


def test_joint_forces_beyond_float32_are_refused_by_name():
    """In float32 they would become infinite and end the motion with the status not finite."""
    arm = rb.Model.serial_chain(2)
    q = np.zeros((2, 2), np.float32)
    with pytest.raises(rb.ArgumentError, match=r"^tau is .*expected numbers within float32's range"):
        arm.simulate(q, q, 0.1, method="rk4", step=0.05, tau=[1e39, 0.0], save_at=2)


@pytest.mark.parametrize("name", ["q0", "qd0", "tau"])
def test_simulate_refuses_arguments_that_are_no_arrays_by_name(name):
    """The check must come before NumPy's own error."""
    arm, given = rb.Model.serial_chain(2), {"q0": np.zeros((2, 2)), "qd0": np.zeros((2, 2)), "tau": 0.0}
    for bad in ([[1.0], [1.0, 2.0]], [10**400, 0], *([None] if name == "qd0" else [])):
        with pytest.raises(rb.ArgumentError, match=f"^{name} is "):
            arm.simulate(save_at=2, **given | {name: bad}, duration=0.1, method="rk4", step=0.05)


@pytest.mark.parametrize("varies", [False, True])
def test_parameters_that_overflow_are_refused(varies):
    """A mass of 1e39 kg would be infinite in float32, and the joint would not move."""
    heavy = rb.Model.serial_chain(1, mass=1e39)
    heavy = heavy.vary(mass=[[1e39], [2e39]]) if varies else heavy
    q = np.zeros((2, 1), np.float32)
    with pytest.raises(rb.ModelError, match=r"model 'chain': a parameter.*beyond the range of float32; .* 3.4e\+38"):
        heavy.forward_dynamics(q, q, q)
    assert np.isfinite(heavy.forward_dynamics(*(x.astype(float) for x in (q, q, q)))).all()


def test_an_armature_beyond_float64_is_refused():
    """Its square would be infinite, and the joint would not move."""
    with pytest.raises(rb.ModelError, match="rotor_inertia gear_ratio"), np.errstate(all="ignore"):
        rb.Model.serial_chain(1).vary(rotor_inertia=[1.0], gear_ratio=[1e200]).forward_dynamics([0.0], [0.0], [1.0])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_overflowing_states_do_not_change_other_samples_or_warn(dtype):
    model = mechanism("every_joint_tree")
    state = random_state(model, (3,))
    q, q1, v, tau = (x.astype(dtype) for x in (state.q, state.q1, state.qd, state.tau))
    far, fast = q.copy(), v.copy()
    far[1, model.position_index[3]], fast[1] = np.finfo(dtype).max, np.finfo(dtype).max
    calls = (
        lambda q, v: model.integrate(q, v),
        lambda q, v: model.difference(q, q1),
        lambda q, v: model.power(q1, v, tau + v / 4),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for call in calls:
            found, expected = call(far, fast), call(q, v)
            assert np.array_equal(np.delete(found, 1, 0), np.delete(expected, 1, 0))


SOLIDS = {
    "length": lambda x: rb.Inertia.rod(x, mass=1.0),
    "size": lambda x: rb.Inertia.box((1.0, x, 1.0), mass=1.0),
    "radius": lambda x: rb.Inertia.sphere(x, mass=1.0),
    "mass": lambda x: rb.Inertia.cylinder(1.0, 1.0, mass=1 / x),
    "density": lambda x: rb.Inertia.sphere(1.0, density=x),
    "semi_axes": lambda x: rb.Immersion.ellipsoid((1.0, 2.0, x)),
    "size of a box in water": lambda x: rb.Immersion.box((1.0, 2.0, x)),
    "radius in water": rb.Immersion.sphere,
}


@pytest.mark.parametrize("what", SOLIDS)
@pytest.mark.parametrize("value", [1e300, 1e-200])
def test_dimensions_with_an_overflowing_inertia_are_refused_by_name(what, value):
    """Otherwise a rod of 1e300 m raises Python's OverflowError, and an ellipsoid gives NumPy's warnings."""
    if what == "mass":
        value = min(value, 1 / value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(rb.ModelError, match=f"^{what.split()[0]} is .*expected"):
            SOLIDS[what](value)


def test_the_added_inertia_of_a_thin_disc_agrees_with_lamb():
    """It is 16 / 45 density a^5 (Lamb 1932, section 102). Thinner discs are refused because of round-off."""
    disc = rb.Immersion.ellipsoid((1.0, 1.0, 1e-6))
    np.testing.assert_allclose(disc.added_volume.diagonal()[3:], [16 / 45, 16 / 45, 0.0], rtol=3e-6)
    assert np.isfinite(rb.Immersion.ellipsoid((1e44, 2e45, 1e50)).added_volume).all()
    for bad in (1e-7, 1e-200, 1e7):
        with pytest.raises(rb.ModelError, match="semi_axes"):
            rb.Immersion.ellipsoid((1.0, 1.0, bad))


@pytest.mark.parametrize("kind", ["linear", "cubic"])
@pytest.mark.parametrize("times", [[0.0, 1e-320, 1.0], [0.0, 1e-200, 1.0]])
def test_table_times_that_float64_cannot_resolve_are_refused(kind, times):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(rb.ArgumentError, match="values of the table at times"):
            rb.Signal.table(times, [0.0, 1e200, -1e200], interpolation=kind)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_wrench_point_with_nonfinite_numbers_is_refused(bad):
    with pytest.raises(rb.ArgumentError, match=r"Wrench on 'link1': point is .*expected finite numbers"):
        rb.Wrench("link1", force=(0.0, 1.0, 0.0), point=(bad, 0.0, 0.0))


def test_an_asymmetric_matrix_is_refused_by_name():
    """The message must not name the inertia instead."""
    with pytest.raises(rb.ModelError, match=r"'link1': added_mass is not symmetric: its element \[0, 1\] is 1.0 and"):
        rb.Model.serial_chain(1).vary(added_mass=[np.eye(6, k=1)])


@pytest.mark.parametrize("name", ["", 0, (), np.zeros(2), rb.Free()])
def test_a_joint_name_must_be_a_string(name):
    """Other types must be refused here, not where the model is saved."""
    with pytest.raises(rb.ModelError, match=r"body 'arm': joint_name is .*expected a non-empty string"):
        rb.ModelBuilder().add_body("arm", joint=rb.Revolute(), joint_name=name)


@pytest.mark.parametrize("parent", [[], {}, 0, np.zeros(2)])
def test_a_parent_must_be_the_name_of_a_body(parent):
    with pytest.raises(rb.ModelError, match=r"body 'arm': parent is .*expected the name of a body"):
        rb.ModelBuilder().add_body("arm", joint=rb.Revolute(), parent=parent)


def test_a_name_that_cannot_be_encoded_is_refused_by_save(tmp_path):
    builder = rb.ModelBuilder()
    builder.add_body("half a pair \ud800", joint=rb.Revolute(), inertia=rb.Inertia.rod(1.0, mass=1.0))
    with pytest.raises(rb.FileFormatError, match=r"arm\.toml: a name in the model contains .*UTF-8"):
        rb.save(builder.build(), tmp_path / "arm.toml")
    assert not (tmp_path / "arm.toml").exists()
