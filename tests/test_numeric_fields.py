"""The classes of drives, sensors, forces and events declare all their fields that may differ between samples."""

import dataclasses

import numpy as np
import pytest

import rbchain as rb
from rbchain.acting.body_contacts import BodyContact
from rbchain.acting.drives import ONE_JOINT, DriveWithModel
from rbchain.acting.numeric_fields import Declared, Drive, Force
from rbchain.acting.plane_contacts import PlaneContact
from rbchain.acting.wrenches import FORCES

CLASSES = (*ONE_JOINT, rb.UserForces, rb.Sampled, rb.Encoder, rb.VelocitySensor, rb.Actuator, rb.Event, *FORCES)
#: Types of the fields that may have a value for each sample.
OF_SAMPLES = ("npt.ArrayLike", "SignalLike", "ThreeSignals", "Pose")


@pytest.mark.plain_python
@pytest.mark.parametrize("kind", CLASSES)
def test_every_field_with_a_value_for_each_sample_is_declared(kind):
    typed = [x.name for x in dataclasses.fields(kind) if any(name in str(x.type) for name in OF_SAMPLES)]
    declared = [field.name for field in kind.numeric_fields]
    # the numbers of the samples are not a parameter of a sensor
    assert sorted(declared) == sorted(set(typed) - {"sample_ids"})


@pytest.mark.plain_python
def test_no_class_of_drives_and_forces_is_missing_here():
    def leaves(kind):
        of_rbchain = [sub for sub in kind.__subclasses__() if sub.__module__.startswith("rbchain.")]
        return {kind}.union(*(leaves(sub) for sub in of_rbchain))

    assert leaves(Declared) - {Declared, Drive, DriveWithModel, Force, BodyContact, PlaneContact} == set(CLASSES)


@pytest.mark.plain_python
@pytest.mark.parametrize("kind", FORCES)
def test_a_force_of_one_sample_has_the_values_of_this_sample(kind):
    rng = np.random.default_rng(0)
    given = {"frame_a": "a", "frame_b": "b", "joint": "a", "frame": "a"}
    values = {x.name: given[x.name] for x in dataclasses.fields(kind) if x.name in given}
    numbers = {x.name: rng.uniform(0.1, 0.9, (2, *x.shape)) for x in kind.numeric_fields if x.kind != "pose"}
    one = kind(**values, **numbers).of_sample(1, (2,))
    for field in kind.numeric_fields:
        if field.kind == "numbers":
            np.testing.assert_array_equal(getattr(one, field.name), numbers[field.name][1])
        elif field.kind == "signal":
            np.testing.assert_array_equal([x(0.0) for x in getattr(one, field.name)], numbers[field.name][1])
    assert all(getattr(one, name) == value for name, value in values.items())


@pytest.mark.plain_python
@pytest.mark.parametrize("kind", FORCES)
def test_a_force_does_not_change_with_the_arrays_that_it_was_made_from(kind):
    given = {"frame_a": "a", "frame_b": "b", "joint": "a", "frame": "a"}
    values = {x.name: given[x.name] for x in dataclasses.fields(kind) if x.name in given}
    rng = np.random.default_rng(0)
    numbers = {x.name: rng.uniform(0.1, 0.9, (2, *x.shape)) for x in kind.numeric_fields if x.kind != "pose"}
    made, expected = (kind(**values, **{name: x.copy() for name, x in numbers.items()}) for _ in range(2))
    changed = kind(**values, **numbers)
    assert made == expected == changed
    for x in numbers.values():
        np.multiply(x, 2.0, out=x)
    assert changed == expected


@pytest.mark.plain_python
def test_drives_events_and_random_signals_do_not_change_with_the_arrays_that_they_were_made_from():
    gains, sensors, frequencies = np.array([3.0, 4.0]), [rb.Encoder("link1", resolution=0.5)], np.array([1.0, 2.0])
    of_signals, level = np.array([0.2, 0.3]), np.array([0.1, 0.2])
    pid = rb.PID("link1", of_signals, kp=gains)
    sampled = rb.Sampled(pid, period=0.01, sensors=sensors)
    event, noise = rb.Event("link1", value=level), rb.Signal.noise(frequencies, frequencies)
    model, expected = rb.Model.serial_chain(1), [3.0 * 0.01, 4.0 * 0.01]  # N m
    motion = model.simulate([[0.19], [0.29]], duration=1e-3, drives=[pid], save_at=2)
    for array in (gains, of_signals, level, frequencies):
        np.multiply(array, 10.0, out=array)
    sensors.clear()
    np.testing.assert_allclose(motion.tau[:, 0, 0], expected, rtol=1e-12)
    assert (pid.kp.tolist(), event.value.tolist(), len(sampled.sensors)) == ([3.0, 4.0], [0.1, 0.2], 1)
    assert noise == rb.Signal.noise([1.0, 2.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="read-only"):
        pid.kp[0] = 1.0


@pytest.mark.plain_python
def test_a_measurement_does_not_change_with_its_arrays():
    t, q = np.linspace(0.0, 1.0, 3), np.zeros((3, 1))
    measured = rb.Measurement(t, q, tau=[1.0])
    t += 1.0
    q += 1.0
    assert (measured.t.tolist(), measured.q.tolist(), measured.tau) == ([0.0, 0.5, 1.0], [[0.0]] * 3, [1.0])


@pytest.mark.plain_python
@pytest.mark.parametrize("kind", CLASSES)
def test_numbers_beyond_the_declared_bounds_are_refused_by_name(kind):
    for field in kind.numeric_fields:
        for bound, direction in ((field.lower, -np.inf), (field.upper, np.inf)):
            if field.kind != "numbers" or None in field.shape or np.isinf(bound):
                continue
            field.checked("it", np.full(field.shape, bound))
            with np.errstate(over="ignore"):
                beyond = np.full(field.shape, np.nextafter(bound, direction))
            with pytest.raises(rb.ArgumentError, match=f"^it: {field.name} is .*; expected (finite )?numbers"):
                field.checked("it", beyond)
            with pytest.raises(rb.ArgumentError, match=f"^it: {field.name} is .*nan.*; expected"):
                field.checked("it", np.full(field.shape, np.nan))
