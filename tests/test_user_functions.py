"""User functions: exceptions in them are reported and do not change other samples."""

import pickle

import numba
import numpy as np
import pytest

import rbchain as rb

BATCH = 21
DURATION = 0.4
STEPPERS = pytest.mark.parametrize("settings", [{}, {"method": "rk4", "step": 0.01}], ids=["rk45", "rk4"])
COUNTS = ("q", "qd", "tau", "status", "steps", "rejections", "evaluations", "end_time", "end_q", "end_qd")


def arm():
    return rb.Model.serial_chain(2)


def start():
    """States of which some, but not all, swing below the angle at which the functions of this file raise."""
    q = np.zeros((BATCH, 2))
    q[:, 0] = np.linspace(-1.2, 2.0, BATCH)
    return q, np.zeros((BATCH, 2))


def raises_below(t, q, qd, parameters, out):
    """A force that raises below an angle after writing one of its two outputs."""
    out[1] = 1e6
    if q[0] < parameters[0]:
        raise ValueError("the angle is too low")
    out[0] = 0.1
    out[1] = 0.0


def divides(t, q, qd, parameters, out):
    out[0] = 1.0 / (t // 0.2 - 1.0)


def event_raises_below(t, q, qd, parameters, out):
    if q[0] < parameters[0]:
        raise RuntimeError("no event there")
    out[0] = q[1] - 10.0


def harmless(t, q, qd, parameters, out):
    out[0] = 0.1


@STEPPERS
@pytest.mark.parametrize("kind", ["UserForces", "event"])
def test_an_exception_in_a_user_function_ends_only_its_own_sample(settings, kind):
    def simulated(samples, level):
        drive = rb.UserForces(raises_below if kind == "UserForces" else harmless, parameters=[level, 0.0])
        event = rb.Event(function=event_raises_below, parameters=[level if kind == "event" else -99.0], stop=False)
        q, qd = start()
        given = {"drives": [drive], "events": [event], "save_at": 5, **settings}
        return arm().simulate(q[samples], qd[samples], DURATION, **given, on_failure="ignore")

    everyone = np.arange(BATCH)
    found, free = simulated(everyone, -1.0), simulated(everyone, -99.0)
    assert free.success
    failed = found.status == rb.Status.USER_FUNCTION_FAILED
    assert 3 < failed.sum() < BATCH - 3
    assert not found.success
    for name in COUNTS:
        np.testing.assert_array_equal(getattr(found, name)[~failed], getattr(free, name)[~failed], err_msg=name)
    alone = simulated(np.flatnonzero(~failed), -1.0)
    for name in COUNTS:
        np.testing.assert_array_equal(getattr(found, name)[~failed], getattr(alone, name), err_msg=name)
    # the trajectory of a failed sample is correct up to its end, and NaN after it
    times = found.t[None, :] <= found.end_time[failed, None]
    np.testing.assert_array_equal(np.isfinite(found.q[failed]).all(-1), times)
    np.testing.assert_array_equal(found.q[failed][times], free.q[failed][times])
    began = found.end_time > 0.0
    assert (found.end_q[failed & began, 0] >= -1.0).all()
    np.testing.assert_array_equal(found.end_q[~began], start()[0][~began])


@STEPPERS
def test_the_message_names_the_drive_the_exception_and_the_time(settings):
    q, qd = start()
    motion = arm().simulate(q, qd, DURATION, drives=[rb.UserForces(divides)], **settings, on_failure="ignore")
    assert (motion.status == rb.Status.USER_FUNCTION_FAILED).all()
    first = "21 of 21: A user function raised an exception. Sample 0: UserForces with function 'divides' raised "
    assert motion.message.startswith(first + "ZeroDivisionError: division by zero at t = 0.2")
    assert motion.exceptions.keys() == {(k,) for k in range(BATCH)}
    one = motion[4]
    assert one.message.startswith("1 of 1: A user function raised an exception. UserForces with function 'divides'")
    folded = arm().simulate(
        q[:20].reshape(4, 5, 2),
        qd[:20].reshape(4, 5, 2),
        DURATION,
        drives=[rb.UserForces(divides)],
        on_failure="ignore",
        save_at=2,
    )
    assert "Sample (0, 0): UserForces" in folded.message
    assert folded[2, 1].exceptions.keys() == {()}


@STEPPERS
def test_on_failure_raise_raises_an_error_with_the_same_message(settings):
    q, qd = start()
    drives = [rb.UserForces(divides)]
    motion = arm().simulate(q, qd, DURATION, drives=drives, **settings, on_failure="ignore")
    with pytest.raises(rb.SimulationError) as raised:
        arm().simulate(q, qd, DURATION, drives=drives, on_failure="raise", **settings)
    assert str(raised.value) == motion.message
    assert arm().simulate(q, qd, DURATION, drives=[rb.UserForces(harmless)], on_failure="raise", **settings).success
    with pytest.raises(rb.ArgumentError, match="on_failure is 'stop'"):
        arm().simulate(q, qd, DURATION, on_failure="stop", **settings)


def test_exceptions_in_object_mode_are_reported():
    """They set Python's error indicator, which compiled code does not check."""

    @numba.njit
    def looks_up(t, q, qd, parameters, out):
        with numba.objmode(found="float64"):
            found = {0: 1.0}[round(t)]
        out[0] = found

    q, qd = start()
    motion = arm().simulate(q, qd, 1.0, drives=[rb.UserForces(looks_up)], on_failure="ignore", save_at=2)
    assert (motion.status == rb.Status.USER_FUNCTION_FAILED).all()
    assert "raised KeyError: 1 at t = 0.5" in motion.message
    assert arm().simulate(q, qd, 0.3, drives=[rb.UserForces(looks_up)], save_at=2).success


def test_an_exception_with_a_computed_message_is_quoted():
    def says_when(t, q, qd, parameters, out):
        if t > 0.1:
            raise ValueError("too late", t)

    motion = arm().simulate(*start(), DURATION, drives=[rb.UserForces(says_when)], on_failure="ignore", save_at=2)
    assert f"ValueError: ('too late', {float(motion.message.split(', ')[1].split(')')[0])})" in motion.message


def test_an_exception_at_the_start_ends_the_sample_at_the_start():
    def never(t, q, qd, parameters, out):
        raise ValueError("never")

    q, qd = start()
    for settings in ({}, {"method": "rk4", "step": 0.01}, {"method": "implicit", "step": 0.01}):
        for given in ({"drives": [rb.UserForces(never)]}, {"events": [rb.Event(function=never, stop=True)]}):
            motion = arm().simulate(q, qd, DURATION, save_at=3, **given, **settings, on_failure="ignore")
            assert (motion.status == rb.Status.USER_FUNCTION_FAILED).all()
            assert (motion.end_time == 0.0).all()
            np.testing.assert_array_equal(motion.end_q, q)
            np.testing.assert_array_equal(motion.q[:, 0], q)
            assert np.isnan(motion.q[:, 1:]).all()
            assert "raised ValueError: never at t = 0 s" in motion.message


def test_torques_are_nan_at_saved_states_for_which_the_function_raises():
    """The function was called at other times, at which it did not raise."""

    def not_there(t, q, qd, parameters, out):
        if t == 0.15:
            raise ValueError("not there")
        out[0] = 0.1

    settings = {"method": "rk4", "step": 0.1, "save_at": [0.0, 0.15, 0.2]}
    motion = arm().simulate(*start(), 0.2, drives=[rb.UserForces(not_there)], **settings, on_failure="ignore")
    # rk4 evaluates at the beginning, middle and end of a step; the saved time 0.15 gives steps of 0.075 and 0.05
    assert (motion.status == rb.Status.USER_FUNCTION_FAILED).all()
    motion = arm().simulate(*start(), 0.2, drives=[rb.UserForces(not_there)], save_at=[0.0, 0.15, 0.2])
    assert motion.success
    assert np.isnan(motion.tau[:, 1]).all()
    assert np.isfinite(motion.tau[:, [0, 2]]).all()


def off_its_solution(t, q, qd, parameters, out):
    """Raises for a state that an oscillator x = sin t does not have at this time."""
    if abs(q[0] - np.sin(t)) > 0.05:
        raise ValueError("off its solution")


def slider(**passive):
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    joint = rb.Prismatic((1, 0, 0))
    builder.add_body("slide", joint=joint, inertia=rb.Inertia(1.0), passive=rb.PassiveForces(**passive))
    return builder.build()


def test_a_user_function_receives_only_times_and_states_of_its_sample():
    """Also while other lanes start their next samples."""
    stop = rb.Event("slide", value=np.linspace(0.2, 0.95, 64), stop=True)
    start = np.zeros((64, 1)), np.ones((64, 1))
    drives = [rb.UserForces(off_its_solution)]
    motion = slider(stiffness=1.0).simulate(*start, 3.0, drives=drives, events=[stop], save_at=2)
    assert (motion.status == rb.Status.STOPPED).all(), motion.message


def beyond(t, q, qd, parameters, out):
    if q[0] > 0.55:
        raise ValueError("beyond")
    out[0] = 1.0


@STEPPERS
def test_events_of_a_step_that_fails_are_not_recorded(settings):
    """The first event would occur at 0.52, in a step in which the function of the second raises."""
    events = [rb.Event("slide", value=0.52, stop=False), rb.Event(function=beyond, stop=True)]
    settings = settings and settings | {"step": 0.25}
    motion = slider().simulate([[0.0]], [[1.0]], 2.0, events=events, save_at=2, **settings, on_failure="ignore")
    assert motion.status[0] == rb.Status.USER_FUNCTION_FAILED
    assert motion.end_time[0] < 0.52
    assert motion.events[0].count[0] == 0
    assert np.isnan(motion.events[0].t).all()


def test_a_pickled_trajectory_keeps_torques_and_exceptions():
    q, qd = start()
    motion = arm().simulate(
        q, qd, DURATION, drives=[rb.UserForces(raises_below, parameters=[-1.0, 0.0])], save_at=5, on_failure="ignore"
    )
    there = pickle.loads(pickle.dumps(motion))
    assert there.message == motion.message
    for sample in (0, 20):
        np.testing.assert_array_equal(there[sample].tau, motion.tau[sample])
        assert there[sample].message == motion[sample].message


def reads_beyond(t, q, qd, parameters, out):
    out[0] = parameters[3]


def writes_beyond(t, q, qd, parameters, out):
    out[5_000_000] += 1.0


@pytest.mark.parametrize("function", [reads_beyond, writes_beyond, numba.njit(reads_beyond), numba.njit(writes_beyond)])
def test_boundscheck_reports_reads_and_writes_beyond_the_end_of_an_array(function):
    q, qd = start()
    for given in ({"drives": [rb.UserForces(function)]}, {"events": [rb.Event(function=function, stop=True)]}):
        with rb.options(boundscheck=True):
            motion = arm().simulate(q, qd, DURATION, **given, on_failure="ignore")
        assert (motion.status == rb.Status.USER_FUNCTION_FAILED).all()
        assert "raised IndexError: index is out of bounds at t = 0 s" in motion.message
    with rb.options(boundscheck=True):
        assert arm().simulate(q, qd, DURATION, drives=[rb.UserForces(harmless)], save_at=2).success


def unknown_name(t, q, qd, parameters, out):
    out[0] = stiffness * q[0]  # noqa: F821


def unknown_attribute(t, q, qd, parameters, out):
    out[0] = q.norm()


def text(t, q, qd, parameters, out):
    out[0] = "a" + 1


def too_few(t, q, qd, out):
    out[0] = 1.0


def opens_a_class(t, q, qd, parameters, out):
    class Spring:
        pass


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (unknown_name, ["'unknown_name'", "name 'stiffness' is not defined"]),
        (unknown_attribute, ["'unknown_attribute'", "Unknown attribute 'norm'", "test_user_functions.py, line"]),
        (text, ["'text'", "add", "Literal[str](a)"]),
        (too_few, ["too_few(t, q, qd, out)", "too many positional arguments"]),
        (opens_a_class, ["'opens_a_class'", "LOAD_BUILD_CLASS"]),
    ],
)
def test_a_function_that_numba_cannot_compile_is_refused_before_the_simulation(function, words):
    for given in ({"drives": [rb.UserForces(function)]}, {"events": [rb.Event(function=function, stop=True)]}):
        with pytest.raises(rb.ArgumentError) as raised:
            arm().simulate(*start(), DURATION, **given)
        message = str(raised.value)
        assert message.startswith("UserForces: " if "drives" in given else "Event: ")
        assert len(message) < 500
        assert "\n" not in message
        assert "cannot be compiled as a function(t, q, qd, parameters, out): " in message
        for word in words:
            assert word in message


@pytest.mark.plain_python  # to avoid the compilation for float32
def test_an_exception_in_a_float32_simulation_is_reported():
    def above(t, q, qd, parameters, out):
        if parameters[0] > 0.1:
            raise ValueError("0.1 in float32 is more than 0.1")

    chain, start = rb.Model.serial_chain(1), np.zeros((2, 1), np.float32)
    drives = [rb.UserForces(above, parameters=[0.1])]
    motion = chain.simulate(start, start, 0.1, method="rk4", step=0.1, drives=drives, on_failure="ignore", save_at=2)
    assert "ValueError: 0.1 in float32 is more than 0.1" in motion.message
