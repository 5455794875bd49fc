"""A failed sample is NaN, and the other samples in its register keep their bits."""

import numpy as np
import pytest

import rbchain as rb

from .conftest import mechanism
from .mechanisms import random_inertia
from .quantities import ARGUMENTS, arrays_of, computed, in_quaternions, random_state, with_argument

POSITIONS = ("q", "q1")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("quantity", ARGUMENTS)
def test_a_sample_with_nonfinite_input_is_nan_and_does_not_change_others(quantity, bad):
    """The nonfinite number may be in any argument. No result of this tree is independent of the state."""
    model = mechanism("every_joint_tree")
    state = random_state(model, (19,))
    whole = computed(model, quantity, state)
    for argument in arrays_of(quantity):
        if argument == "prescribed":
            continue
        for chain in (0, 10, 18):
            spoilt = getattr(state, argument).copy()
            spoilt[chain] = bad
            if argument in POSITIONS and np.isinf(bad):  # an infinite quaternion is refused
                keep = in_quaternions(model)
                spoilt[chain, keep] = getattr(state, argument)[chain, keep]
            found = computed(model, quantity, with_argument(state, argument, spoilt))
            assert any(not np.isfinite(x[chain]).all() for x in found), argument
            for x, y in zip(found, whole, strict=True):
                assert np.array_equal(np.delete(x, chain, 0), np.delete(y, chain, 0)), argument
                # finite entries are those that are equal for all states
                left = np.isfinite(x[chain])
                assert np.array_equal(x[chain][left], y[chain][left]), argument


@pytest.mark.parametrize(
    "quantity", ["forward_dynamics", "hybrid_dynamics", "mass_matrix_inverse", "solve_mass_matrix"]
)
def test_all_results_of_a_failed_sample_are_nan(quantity):
    """One nonfinite number makes the whole solution of the linear system NaN."""
    model = mechanism("every_joint_tree")
    state = random_state(model, (19,))
    for argument in arrays_of(quantity):
        spoilt = getattr(state, argument).copy()
        if argument in ("prescribed", "qdd", "wrenches"):
            continue
        spoilt[4, -1] = np.nan
        if quantity == "hybrid_dynamics":
            state.prescribed[4, -1] = False
        found = computed(model, quantity, with_argument(state, argument, spoilt))[0]
        assert np.isnan(found[4]).all(), argument


@pytest.mark.parametrize("quantity", ARGUMENTS)
def test_a_single_state_with_nonfinite_input_gives_nan(quantity):
    model = mechanism("every_joint_tree")
    state = random_state(model, ())
    for argument in arrays_of(quantity):
        if argument != "prescribed":
            bad = with_argument(state, argument, np.full_like(getattr(state, argument), np.nan))
            assert any(np.isnan(x).any() for x in computed(model, quantity, bad)), argument


@pytest.mark.parametrize("settings", [{}, {"method": "rk4", "step": 0.01}])
def test_a_nonfinite_quaternion_ends_only_its_own_sample(settings):
    model = mechanism("ball_chain")
    q, qd = model.random_state(np.random.default_rng(0), 10)
    good = model.simulate(q, qd, 0.1, **settings)
    q[7, 5] = np.nan
    motion = model.simulate(q, qd, 0.1, **settings, on_failure="ignore")
    assert motion.status[7] == 2
    assert np.isnan(motion.q[7, 1]).all()
    assert np.array_equal(np.delete(motion.q, 7, 0), np.delete(good.q, 7, 0))


def test_a_free_body_without_inertia_is_nan_in_its_own_sample_only():
    builder = rb.ModelBuilder()
    builder.add_body("body", joint=rb.Free(), inertia=random_inertia(np.random.default_rng(0)))
    model = builder.build()
    chains = model.vary(mass=[[1.0], [0.0], [1.0]], inertia=np.array([np.eye(3), np.zeros((3, 3)), np.eye(3)])[:, None])
    state = random_state(chains, (3,))
    for quantity in ("forward_dynamics", "mass_matrix_inverse", "solve_mass_matrix"):
        found = computed(chains, quantity, state)[0]
        assert np.isnan(found[1]).all()
        assert np.isfinite(found[[0, 2]]).all()


@pytest.mark.parametrize(
    "joint", [rb.Free(), rb.Spherical(), rb.Composite([rb.Revolute((1, 0, 0)), rb.Revolute((0, 1, 0)), rb.Revolute()])]
)
@pytest.mark.parametrize("cg", [(0, 0, 0), (0.3, 0, 0)])
def test_a_thin_rod_that_turns_about_its_axis_is_singular_in_every_orientation(joint, cg):
    """The rod is one sample beside a regular one; a model with such rods only is refused."""
    builder = rb.ModelBuilder()
    builder.add_body("rod", joint=joint, inertia=rb.Inertia(2.0, cg=cg, inertia=(1, 1, 1)))
    rod, ball = rb.Inertia.rod(1.0, mass=2.0, axis=(1, 0, 0)).inertia, np.eye(3)
    model = builder.build().vary(inertia=np.array([*[rod] * 40, ball])[:, None])
    q, qd = model.random_state(np.random.default_rng(0), 41)
    accelerations, inverses = model.forward_dynamics(q, qd, np.ones(model.nv)), model.mass_matrix_inverse(q)
    assert np.isnan(accelerations[:40]).all()
    assert np.isnan(inverses[:40]).all()
    assert np.isfinite(accelerations[40]).all()
    with pytest.raises(rb.ModelError, match=r"resists the motion of \['rod'\]"):
        model[7].forward_dynamics(q[7], qd[7], np.ones(model.nv))


def escapes(t, q, qd, parameters, out):
    """A force with which a unit mass reaches infinity in finite time: x'' = 100 x^3."""
    out[0] = parameters[0] * q[0] ** 3


@pytest.mark.parametrize("settings", [{}, {"method": "rk4", "step": 1e-3}])
def test_a_failed_sample_reports_its_last_valid_time_and_state(settings):
    """From x = 1 and x' = sqrt(50), x = 1 / (1 - sqrt(50) t) diverges; the other two samples rest or stop.

    Between two states of RK4 beyond the singularity, the interpolant can have any value, so the event is out of reach.
    """
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(1.0))
    escape, rate = 1.0 / np.sqrt(50.0), np.sqrt(50.0)
    drives = [rb.UserForces(escapes, parameters=[[100.0], [0.0], [0.0]])]
    stop = rb.Event("slide", value=[-1e300, -0.5, -0.5], stop=True)
    start = [[1.0], [0.0], [0.0]], [[rate], [0.1], [-10.0]]
    times = np.linspace(0.0, 0.3, 31)
    motion = builder.build().simulate(
        *start, 0.3, drives=drives, events=[stop], save_at=times, **settings, on_failure="ignore"
    )
    assert motion.status[0] in (rb.Status.STEP_UNDERFLOW, rb.Status.NOT_FINITE)
    assert motion.status[1:].tolist() == [rb.Status.DONE, rb.Status.STOPPED]
    # RK4 steps beyond the singularity before its numbers overflow
    assert 0.99 * escape < motion.end_time[0] < escape + (0.02 if settings else 1e-6)
    assert np.isfinite([motion.end_q[0], motion.end_qd[0]]).all()
    saved = times <= motion.end_time[0]
    assert np.isfinite(motion.q[0, saved]).all()
    assert np.isnan(motion.q[0, ~saved]).all()
    early = times < 0.7 * escape
    np.testing.assert_allclose(motion.q[0, early, 0], 1.0 / (1.0 - rate * times[early]), rtol=1e-6)
    assert motion.end_time[1] == 0.3
    assert motion.end_q[1] == motion.q[1, -1]
    np.testing.assert_allclose(motion.end_time[2], 0.05, rtol=0, atol=1e-11)
    np.testing.assert_array_equal(motion.end_q[2], motion.events[0].q[2, 0])
    np.testing.assert_array_equal(motion.end_qd[2], motion.events[0].qd[2, 0])
    assert f"Sample 0 reached {motion.end_time[0]:.6g} s." in motion.message
    with pytest.raises(rb.SimulationError, match="Sample 0 reached"):
        builder.build().simulate(*start, 0.3, drives=drives, on_failure="raise", **settings)


def test_a_sample_with_too_many_steps_ends_at_the_state_it_reached():
    chain, start = rb.Model.serial_chain(2), ([[0.1, 0.2]], [[0.0, 0.0]])
    few = chain.simulate(*start, 5.0, max_steps=40, rtol=1e-10, atol=1e-12, on_failure="ignore", save_at=2)
    assert few.status[0] == rb.Status.TOO_MANY_STEPS
    assert 0.0 < few.end_time[0] < 5.0
    whole = chain.simulate(*start, 5.0, rtol=1e-10, atol=1e-12, save_at=[few.end_time[0]])
    np.testing.assert_allclose(few.end_q, whole.q[:, 0], rtol=0, atol=1e-8)
    np.testing.assert_allclose(few.end_qd, whole.qd[:, 0], rtol=0, atol=1e-7)
    assert "The limit of max_steps was reached" in few.message


@pytest.mark.plain_python
def test_tolerances_below_round_off_are_refused():
    chain, zero = rb.Model.serial_chain(2), np.zeros((1, 2))
    for rtol, dtype in ((1e-17, np.float64), (1e-8, np.float32)):
        state = zero.astype(dtype)
        with pytest.raises(rb.ArgumentError, match=f"rtol is {rtol}, below the round-off of {np.dtype(dtype).name}"):
            chain.simulate(state, state, 0.1, rtol=rtol, save_at=2)
        assert chain.simulate(state, state, 0.1, save_at=2).success


def test_a_long_simulation_at_a_tight_tolerance_is_accurate():
    """It takes more than 100,000 steps; the energy of the pendulum shows that they are accurate."""
    pendulum, start = rb.Model.serial_chain(1), ([[0.3]], [[0.0]])
    motion = pendulum.simulate(*start, 2000.0, rtol=1e-10, atol=1e-12, save_at=2)
    assert motion.success
    assert motion.steps[0] > 100_000
    energy = np.sum(pendulum.energy(motion.q, motion.qd), 0)[0]
    assert abs(energy[1] - energy[0]) < 1e-5 * pendulum.mass[0] * 10.0 * 0.25


@pytest.mark.parametrize("settings", [{"method": "rk4", "step": 0.3}, {}])
def test_a_quaternion_with_overflowing_length_ends_only_its_own_sample(settings):
    model = mechanism("ball_chain")
    q, qd = model.random_state(np.random.default_rng(0), 10)
    good = model.simulate(q, qd, 0.3, **settings)
    qd[7] = 1e20
    motion = model.simulate(q, qd, 0.3, **settings, on_failure="ignore")
    assert motion.status[7] in (rb.Status.NOT_FINITE, rb.Status.STEP_UNDERFLOW)
    assert np.isnan(motion.q[7, 1]).all()
    assert np.array_equal(np.delete(motion.q, 7, 0), np.delete(good.q, 7, 0))
