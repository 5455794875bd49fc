"""Each pair of features is right or is refused by name."""

import numpy as np
import pytest

import rbchain as rb

from .actions import CONTACTS, KD, KP, RESOLUTION
from .cases import FIXED_STEPS, LOOPS, PRESCRIBED, controls_a_loop, covering_cases, documented_refusals, short_cases
from .running import STEPS, WAYS_TO_RUN, Setup
from .worlds import WORLDS, World

ACCEPTED, REFUSED = covering_cases()
INTERNAL = ("none", "DryFriction", "HardStops")  # forces between bodies
FLOATING_IN_AIR = ("floating", "geared", "compliant")

pytestmark = pytest.mark.plain_python


def marked(cases):
    """Leave most cases to the slow tests."""
    short = short_cases()
    return [pytest.param(case, id=str(case), marks=[] if case in short else pytest.mark.slow) for case in cases]


def other_method(case):
    """A method for the reference, of another family if there is one that supports the case."""
    if case.force in CONTACTS and (case.mechanism in LOOPS or case.drive in PRESCRIBED):
        return None
    if case.method != "rk45":
        return "rk45"
    return "dop853" if controls_a_loop(case) else "rosenbrock"


def size_of(motion):
    """A number that is larger than all coordinates and velocities of a motion, in their units."""
    return 1.0 + max(np.abs(motion.q).max(), np.abs(motion.qd).max())


def effect_of_rounded_readings(setup):
    """The change of qd at the end if each reading of the encoder is rounded to the other neighbor.

    The force of kd times differences of readings has an impulse that telescopes.
    """
    impulse = (KP * setup.mechanism.duration + 2 * KD) * RESOLUTION * float(setup.mechanism.world.scaled(1.0, 1, 2))
    return impulse * np.abs(np.linalg.inv(setup.model.mass_matrix(setup.mechanism.q))).max()


def bound_of_error(setup, motion):
    """The largest error at the end that the method and its settings allow, for q and for qd.

    Adaptive methods: the root mean square of the relative errors of a step is at most its tolerance, so one of them is
    at most sqrt(nq + nv) times as large. Stiffness and gains multiply earlier errors by less than 3 during these short
    motions. Fixed steps: the difference to half the step exceeds the error of the latter; an impact
    that is located to a step adds the change of the velocity during a step. Errors that are not small compared to the
    resolution of an encoder change its readings.
    """
    size = size_of(motion)
    round_off = 10 * STEPS * np.finfo(setup.dtype).eps * size
    if setup.case.method not in FIXED_STEPS:
        tolerance = setup.settings()["rtol"]
        largest = np.sqrt(setup.model.nq + setup.model.nv) * tolerance
        return 3 * int(np.max(motion.steps)) * largest * size + round_off, motion
    fine = setup.simulate(**setup.settings(refinement=2), energy_error=motion.has_energy_error)
    difference = max(np.abs(fine.q[-1] - motion.q[-1]).max(), np.abs(fine.qd[-1] - motion.qd[-1]).max())
    if setup.case.force in CONTACTS:
        difference += 2 * setup.settings()["step"] * np.ptp(motion.qd, axis=0).max() / setup.mechanism.duration
    if setup.case.drive == "Encoder" and difference > 1e-3 * RESOLUTION:
        difference += effect_of_rounded_readings(setup)
    return 2 * difference + round_off, fine


def check_energy(setup, motion, accurate, bound):
    """The work of all forces explains the change of the energy.

    The error is at most twice the relative error of the state, times the energy that is exchanged, because the kinetic
    energy is quadratic in the velocities. In methods with fixed steps, the work along a step has an error even where
    the ends of the step are exact, as in prescribed motions. Half the step must remove at least a quarter of it.
    """
    q, qd = motion.q.astype(float), motion.qd.astype(float)
    kinetic, potential = setup.model.energy(q, qd)
    energy = kinetic + potential + motion.elastic_energy
    work = energy - energy[0] - motion.energy_error
    exchanged = max(kinetic.max(), np.ptp(potential), np.abs(work).max())
    allowed = 2 * bound / size_of(motion) * exchanged
    if setup.case.method in FIXED_STEPS:
        allowed += 4 * np.abs(motion.energy_error - accurate.energy_error).max()
    assert np.abs(motion.energy_error).max() <= allowed


def check_momentum(setup, motion, bound):
    """Without external forces, only gravity changes the momentum. That about the center of mass is constant.

    The error of the momentum A(q) qd is at most that of A(q), which changes by less than itself per rad and m, times
    qd, and that of qd.
    """
    q, qd = motion.q.astype(float), motion.qd.astype(float)
    change = setup.model.momentum(q, qd) - setup.model.momentum(q[0], qd[0])
    change[:, :3] -= setup.model.mass.sum() * setup.model.gravity * motion.t[:, None]
    inertia = np.abs(setup.model.centroidal_momentum_matrix(q)).sum(axis=-1).max()
    np.testing.assert_allclose(change, 0.0, rtol=0, atol=inertia * bound * size_of(motion))


def bodies_of(setup, motion, names):
    """The poses and velocities of bodies at the end, and the largest sum of their derivatives by the state."""
    model, q, qd = setup.model, motion.q[-1].astype(float), motion.qd[-1].astype(float)
    found, growth = [], 0.0
    for name in names:
        pose = model.frame_poses(q, name)
        J = model.jacobian(q, name)
        found += [pose.translation, pose.rotation.reshape(-1), J @ qd]
        rates = np.abs(J).sum(axis=1) + np.abs(model.jacobian_derivative(q, qd, name)).sum(axis=1)
        growth = max(growth, rates.max())
    return np.concatenate(found), growth


@pytest.mark.parametrize("case", marked(ACCEPTED))
def test_a_case_is_right(case, tmp_path):
    """Its way to run gives the same motion, another method agrees, and so does the same motion in another world.

    Energy and momentum are balanced.
    """
    setup = Setup(case)
    WAYS_TO_RUN[case.way](setup, tmp_path)
    motion = setup.simulate(energy_error=True)
    assert motion.success, motion.message
    bound, accurate = bound_of_error(setup, motion)
    check_energy(setup, motion, accurate, bound)
    if case.mechanism in FLOATING_IN_AIR and case.force in INTERNAL:
        check_momentum(setup, motion, bound)
    method = other_method(case)
    if method:
        reference = setup.reference(method)
        assert reference.success, reference.message
        np.testing.assert_allclose(accurate.q[-1], reference.q[-1], rtol=0, atol=bound)
        np.testing.assert_allclose(accurate.qd[-1], reference.qd[-1], rtol=0, atol=bound)
    other = Setup(case, World(**WORLDS[case.world]))
    again = other.simulate()
    assert again.success, again.message
    if case.world == "rerooted":
        found, _ = bodies_of(other, again, setup.model.body_names)
        expected, growth = bodies_of(setup, motion, setup.model.body_names)
        np.testing.assert_allclose(found, expected, rtol=0, atol=2 * bound * growth)
        return
    q, qd = again.q[-1] / other.mechanism.q_unit, again.qd[-1] / other.mechanism.qd_unit
    np.testing.assert_allclose(q, motion.q[-1], rtol=0, atol=2 * bound)
    np.testing.assert_allclose(qd, motion.qd[-1], rtol=0, atol=2 * bound)


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_a_case_that_the_page_on_limits_excludes_is_refused_by_name(case, tmp_path):
    (word,) = documented_refusals(case)
    with pytest.raises((rb.ArgumentError, rb.ModelError)) as refused:
        Setup(case, World(**WORLDS[case.world]))
        WAYS_TO_RUN[case.way](Setup(case), tmp_path)
    assert word in str(refused.value)
