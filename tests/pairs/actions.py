"""The drives and forces of the pairs, for a mechanism in its world."""

import numpy as np

import rbchain as rb
from rbchain.acting import contacts

POINT = (0.25, 0.02, 0.0)  # of the tool, m
GAP = 2e-3  # of a contact at the start, m
RADIUS = 0.02
AMPLITUDE, FREQUENCY = 2.0, 20.0
KP, KD = 30.0, 1.0  # of PID, N m/rad and N m s/rad
PERIOD = 4e-3  # of a digital controller, s
RESOLUTION = 1e-5  # of its encoder, rad
DRIVES = (
    *("none", "PrescribedForce", "PrescribedAcceleration", "PrescribedVelocity", "PrescribedPosition", "PID"),
    *("PID with gravity compensation", "ComputedTorque", "UserForces", "Sampled", "Encoder", "Actuator"),
)
CONTACTS = tuple(kind.__name__ for kind in contacts.CONTACTS)
FORCES = ("none", "Wrench", "SpringDamper", "Bushing", "Current", *CONTACTS)


def hold(t, q, qd, parameters, tau):
    i, j = int(parameters[0]), int(parameters[1])
    tau[j] -= parameters[2] * q[i] + 0.1 * parameters[2] * qd[j]


def hold_derivatives(t, q, qd, parameters, out):
    j = int(parameters[1])
    out[0, j, j] -= parameters[2]
    out[1, j, j] -= 0.1 * parameters[2]


def hold_by_parameters(t, q, qd, parameters, out):
    i, j = int(parameters[0]), int(parameters[1])
    out[j, 2] -= q[i] + 0.1 * qd[j]


def drives(kind, mechanism, sample=None):
    """A drive of the joint "driven"; torques are in N m of its world. `sample` numbers the noise of a single sample."""
    world, model, name = mechanism.world, mechanism.model, mechanism.world.name("driven")
    torque = float(world.scaled(1.0, 1, 2))
    at = model.joint_names.index(name)
    i, j = int(model.position_index[at]), int(model.velocity_index[at])
    q0, qd0 = mechanism.q[i], mechanism.qd[j]
    wave = rb.Signal.sines(AMPLITUDE * torque, FREQUENCY)
    gains = {"kp": KP * torque, "kd": KD * torque}
    ramp = rb.Signal.polynomial([q0, qd0, -2.0])
    sampled = rb.PID(name, 0.5, **gains)
    return {
        "none": lambda: [],
        "PrescribedForce": lambda: [rb.PrescribedForce(name, wave)],
        "PrescribedAcceleration": lambda: [rb.PrescribedAcceleration(name, rb.Signal.sines(AMPLITUDE, FREQUENCY))],
        "PrescribedVelocity": lambda: [rb.PrescribedVelocity(name, rb.Signal.polynomial([qd0, -4.0]))],
        "PrescribedPosition": lambda: [rb.PrescribedPosition(name, ramp)],
        "PID": lambda: [rb.PID(name, 0.5, **gains, ki=5.0 * torque)],
        "PID with gravity compensation": lambda: [rb.PID(name, 0.5, **gains, gravity_compensation=True)],
        "ComputedTorque": lambda: [rb.ComputedTorque(name, 0.5, kp=30.0, kd=5.0)],
        "UserForces": lambda: [
            rb.UserForces(
                hold,
                parameters=(i, j, 20.0 * torque),
                derivatives=hold_derivatives,
                parameter_derivatives=hold_by_parameters,
            )
        ],
        "Sampled": lambda: [rb.Sampled(sampled, period=PERIOD, delay=1e-3)],
        "Encoder": lambda: [
            rb.Sampled(
                sampled,
                period=PERIOD,
                sensors=[rb.Encoder(name, resolution=RESOLUTION, noise=1e-3, seed=3, sample_ids=sample)],
            )
        ],
        "Actuator": lambda: [
            rb.Sampled(sampled, period=PERIOD),
            rb.Actuator(name, time_constant=5e-3, stall_torque=40.0 * torque, no_load_speed=20.0),
        ],
    }[kind]()


def forces(kind, mechanism):
    """A force on the tool or on the joint "other"."""
    world, model = mechanism.world, mechanism.model
    tool, other = world.name("tool"), world.name("other")
    point = world.scaled(POINT, length=1)
    pose = model.frame_poses(mechanism.q, tool)
    place = pose.translation + pose.rotation @ point
    J = model.jacobian(mechanism.q, tool, point=point)[:3]
    direction = J @ mechanism.qd
    direction = direction / np.linalg.norm(direction)
    radius, gap = (float(world.scaled(x, length=1)) for x in (RADIUS, GAP))
    rough = {"friction": 0.3, "restitution": 0.5}
    stiffness, damping = (float(world.scaled(x, mass=1)) for x in (200.0, 2.0))
    anchor = place + world.vector((0.1, 0.2, 0.3), length=1)
    linear, angular = (float(world.scaled(x, 1, exponent)) for x, exponent in ((100.0, 0), (5.0, 2)))
    bushing = np.diag([linear] * 3 + [angular] * 3)
    load = world.vector((3.0, -2.0, 1.0), 1, 1), world.vector((0.2, 0.1, -0.3), 1, 2)
    is_linear = model.joint_types[model.joint_names.index(other)] == "prismatic"
    friction = float(world.scaled(0.5, 1, 1 if is_linear else 2))
    return {
        "none": lambda: [],
        "Wrench": lambda: [rb.Wrench(tool, force=load[0], moment=load[1], point=point)],
        "SpringDamper": lambda: [
            rb.SpringDamper(None, tool, point_a=anchor, point_b=point, stiffness=stiffness, damping=damping)
        ],
        "Bushing": lambda: [rb.Bushing(None, tool, stiffness=bushing, damping=0.01 * bushing, pose_a=pose)],
        "Current": lambda: [rb.Current(tuple(world.vector((0.5, -0.3, 0.2), length=1)))],
        "DryFriction": lambda: [rb.DryFriction(other, friction)],
        "HardStops": lambda: [rb.HardStops(other, restitution=0.5)],
        "SphereContact": lambda: [
            rb.SphereContact(
                tool,
                point=point,
                radius=radius,
                plane_point=place + (radius + gap) * direction,
                plane_normal=-direction,
                **rough,
            )
        ],
        "EllipsoidContact": lambda: [
            rb.EllipsoidContact(
                tool,
                point=point,
                semi_axes=radius * np.diag([1.0, 0.8, 0.6]),
                plane_point=place + (radius + gap) * direction,
                plane_normal=-direction,
                **rough,
            )
        ],
        "CapsuleCapsuleContact": lambda: [
            rb.CapsuleCapsuleContact(
                None,
                tool,
                point_a=place + (2 * radius + gap) * direction + 0.5 * radius * direction,
                point_b=point,
                half_axis_a=np.cross(direction, world.vector((RADIUS, 0.0, RADIUS), length=1)),
                half_axis_b=0.5 * radius * np.array([0.6, 0.0, 0.8]),
                radius_a=radius,
                radius_b=radius,
                **rough,
            )
        ],
        "SphereSphereContact": lambda: [
            rb.SphereSphereContact(
                None,
                tool,
                point_a=place + (2 * radius + gap) * direction,
                point_b=point,
                radius_a=radius,
                radius_b=radius,
                **rough,
            )
        ],
    }[kind]()
