"""Drives, sensors, forces and events are checked when they are made, before there is a model."""

import numpy as np
import pytest

import rbchain as rb

PLANE = {"plane_point": (0, 0, 0), "plane_normal": (0, 0, 1)}


def count(t, q, qd, parameters, out):
    out[0] = 1.0


MISTAKES = [
    (lambda: rb.PID("j", 0.0, kp="big"), "PID of joint 'j': kp is 'big'; expected real numbers"),
    (lambda: rb.PID("j", 0.0, kp=-1.0), "PID of joint 'j': kp is -1.0; expected finite numbers of at least 0"),
    (lambda: rb.PID("j", "aim", kp=1.0), "PID of joint 'j': reference is 'aim'; .* or 'outer'"),
    (lambda: rb.PID("j", "target", kp=1.0), 'PID of joint \'j\': reference is "target", which is now called "outer"'),
    (
        lambda: rb.PID("j", 0.0, kp=1.0, controller_model="true"),
        "PID of joint 'j': controller_model is 'true'; expected \"nominal\", \"own\" or a Model",
    ),
    (
        lambda: rb.ComputedTorque("j", 0.0, kp=1.0, kd=1.0, controller_model="nominl"),
        "controller_model is 'nominl'; expected .* or a Model; did you mean nominal",
    ),
    (lambda: rb.PrescribedForce("j", 0.0, controller_model=3), "controller_model is 3; expected .* or a Model"),
    (lambda: rb.PID("j", 0.0, kp=1.0, dof=-1), "PID of joint 'j': dof is -1; expected a whole number of at least 0"),
    (lambda: rb.PID("j", 0.0, kp=1.0, dof=0.0), "PID of joint 'j': dof is 0.0; expected a whole number of at least 0"),
    (lambda: rb.PID(3, 0.0, kp=1.0), "PID of joint 3: joint is 3; expected the name of a joint"),
    (lambda: rb.PID("j", 0.0, kp=1.0, gravity_compensation=1), "gravity_compensation is 1; expected True or False"),
    (lambda: rb.PID("j", 0.0, kp=rb.Signal.sines(1.0, 2.0)), "kp is a signal, .* which cannot change with time"),
    (lambda: rb.ComputedTorque("j", 0.0, kp=1.0, kd=np.nan), "ComputedTorque of joint 'j': kd is nan"),
    (lambda: rb.PrescribedForce("j", None), "PrescribedForce of joint 'j': signal"),
    (lambda: rb.PrescribedForce("j", 0.0, limit=-1.0), "PrescribedForce of joint 'j': limit is -1.0"),
    (lambda: rb.PrescribedAcceleration("j", "fast"), "PrescribedAcceleration of joint 'j': signal is 'fast'"),
    (lambda: rb.PrescribedVelocity("j", np.nan), "PrescribedVelocity of joint 'j': signal"),
    (lambda: rb.PrescribedPosition("j", 0.0, dof=True), "PrescribedPosition of joint 'j': dof is True"),
    (lambda: rb.UserForces("count"), r"function is 'count'; expected a function\(t, q, qd, parameters, out\)"),
    (lambda: rb.UserForces(count, parameters=[np.nan]), "UserForces with function 'count': parameters is .*nan"),
    (lambda: rb.Sampled(rb.PID("j", 0, kp=1), period=-1), "Sampled PID of joint 'j': period is -1; .* above 0"),
    (lambda: rb.Sampled(count, phase=-1.0), "Sampled UserForces: phase is -1.0; .* at least 0"),
    (lambda: rb.Sampled(count, delay=-1.0), "Sampled UserForces: delay is -1.0"),
    (lambda: rb.Actuator("j", time_constant=-0.1), "Actuator of joint 'j': time_constant is -0.1"),
    (
        lambda: rb.Actuator("j", torque_speed=[1.0, 2.0]),
        r"torque_speed has shape \(2,\); expected \(m, 2\) or \(..., m, 2\)",
    ),
    (lambda: rb.Encoder("j", noise=-1.0), "Encoder of joint 'j': noise is -1.0"),
    (lambda: rb.Encoder("j", seed=-1), "Encoder of joint 'j': seed is -1; expected a whole number from 0 to"),
    (lambda: rb.VelocitySensor("j", resolution=-1.0), "VelocitySensor of joint 'j': resolution is -1.0"),
    (lambda: rb.Event(), "Event: joint is None and function is None; use one of the two"),
    (
        lambda: rb.Event("j", function=count, stop=True),
        "Event of joint 'j': joint is 'j' and function is .*; use one of the two",
    ),
    (lambda: rb.Event("j", direction=2, stop=True), r"direction is 2; expected 1 \(rising\), -1 \(falling\) or 0"),
    (
        lambda: rb.Event("j", quantity="acceleration", stop=True),
        "quantity is 'acceleration'; expected one of 'position', 'vel",
    ),
    (
        lambda: rb.Event("j", max_records=0, stop=True),
        "Event of joint 'j': max_records is 0; expected a whole number from 1 to",
    ),
    (
        lambda: rb.Event(function=count, dof=1, stop=True),
        "Event with function 'count' has dof = 1, but only the event of a joint",
    ),
    (lambda: rb.Event("j", parameters=[1.0], stop=True), "only a function has parameters; remove them"),
    (lambda: rb.Wrench("b", axes="local"), "Wrench on 'b': axes is 'local'; expected one of 'world', 'body'"),
    (lambda: rb.Wrench("b", force=(1.0, 2.0)), "Wrench on 'b': force"),
    (lambda: rb.Wrench("b", point=(1.0, 2.0)), r"Wrench on 'b': point has shape \(2,\); expected \(3,\) or"),
    (lambda: rb.Current((1.0, np.nan, 0.0)), "Current: velocity"),
    (
        lambda: rb.SpringDamper(3, "b", point_a=(0, 0, 0), point_b=(0, 0, 0), stiffness=1.0),
        "SpringDamper 3-b: frame_a is 3; expected the name of a body or frame, or None for the world",
    ),
    (
        lambda: rb.SpringDamper(None, "b", point_a=(0, 0, 0), point_b=(0, 0, 0), stiffness=-1.0),
        "SpringDamper world-b: stiffness is -1.0",
    ),
    (
        lambda: rb.Bushing(None, "b", stiffness=np.eye(3)),
        r"Bushing world-b: stiffness has shape \(3, 3\); expected \(6, 6\)",
    ),
    (
        lambda: rb.Bushing(None, "b", stiffness=np.eye(6), pose_a=(0, 0, 1)),
        r"Bushing world-b: pose_a is .*; expected a Pose",
    ),
    (lambda: rb.DryFriction("j", -1.0), "DryFriction of joint 'j': kinetic is -1.0"),
    (
        lambda: rb.DryFriction("j", 1.0, static=2.0, kinetic_backward=1.0),
        "kinetic_backward and static are given; expected static_backward",
    ),
    (
        lambda: rb.HardStops("j", restitution=1.5),
        "HardStops of joint 'j': restitution is 1.5; expected numbers from 0 to 1",
    ),
    (lambda: rb.HardStops("j", dof=-1), "HardStops of joint 'j': dof is -1"),
    (lambda: rb.SphereContact("b", point=(0, 0, 0), radius=-1, **PLANE), "SphereContact on 'b': radius is -1.0"),
    (
        lambda: rb.SphereContact("b", point=(0, 0, 0), radius=1, plane_point=(0, 0, 0), plane_normal=(0, 0, 0)),
        "SphereContact on 'b': plane_normal is .*; expected vectors that are not zero",
    ),
    (
        lambda: rb.SphereContact("b", point=(0, 0, 0), radius=1, **PLANE, max_records=0),
        "SphereContact on 'b': max_records is 0; expected a whole number from 1 to 1000000",
    ),
    (
        lambda: rb.SphereSphereContact("a", "b", point_a=(0, 0, 0), point_b=(0, 0, 0), radius_a=1.0, radius_b=-1.0),
        "SphereSphereContact of 'a' and 'b': radius_b is -1.0",
    ),
]

MISTAKES_IN_PARTS = [
    (lambda: rb.Inertia(-1.0), "mass is -1.0; expected zero or more"),
    (lambda: rb.PassiveForces(damping=-1.0), "damping is -1.0; expected zero or more"),
    (lambda: rb.PassiveForces(damping=[1.0, -2.0]), "damping is -2.0; expected zero or more"),
    (lambda: rb.PassiveForces(stop_lower=1.0, stop_upper=-1.0), "stop_lower is 1.0; expected less than stop_upper"),
    (lambda: rb.PassiveForces(stop_upper=1.0), "limit_stiffness is 0.0; expected more than zero"),
    (
        lambda: rb.PassiveForces(damping=[1.0, 2.0], stiffness=[1.0, 2.0, 3.0]),
        r"damping has shape \(2,\); expected .* as stiffness has 3",
    ),
    (lambda: rb.JointLimits(1.0, -1.0), "lower is 1.0 and upper is -1.0; expected lower <= upper"),
    (lambda: rb.JointLimits(-1.0, 1.0, effort=-3.0), "effort is -3.0; expected zero or more"),
    (lambda: rb.JointLimits(velocity=[[1.0]]), r"velocity has shape \(1, 1\); expected a number, or one for each"),
]


@pytest.mark.plain_python
@pytest.mark.parametrize(("make", "message"), MISTAKES)
def test_a_mistake_is_refused_when_the_object_is_made(make, message):
    with pytest.raises(rb.ArgumentError, match=message):
        make()


@pytest.mark.plain_python
@pytest.mark.parametrize(("make", "message"), MISTAKES_IN_PARTS)
def test_a_mistake_in_a_part_of_a_mechanism_is_refused_when_it_is_made(make, message):
    with pytest.raises(rb.ModelError, match=message):
        make()


@pytest.mark.plain_python
def test_forces_and_limits_of_a_joint_keep_copies_of_arrays():
    given = np.array([1.0, 2.0])
    forces, limits = rb.PassiveForces(damping=given), rb.JointLimits(velocity=given)
    given[:] = -1.0
    assert forces.damping.tolist() == limits.velocity.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        forces.damping[0] = -1.0
