"""Models, signals and actions that the tests of actions share, and their reference solutions."""

import numpy as np
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import rbchain as rb

from ..mechanisms import random_inertia, random_rotation, random_tree

DONE, STOPPED, TOO_STIFF = 0, 4, 5
TIGHT = {"rtol": 1e-11, "atol": 1e-12}
RK4 = {"method": "rk4", "step": 1e-3}
BOTH = [TIGHT, RK4]
MASS = 2.0


def slider(**passive):
    """2 kg along x, without gravity."""
    builder, own = rb.ModelBuilder(gravity=(0, 0, 0)), rb.PassiveForces(**passive)
    builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(MASS), passive=own)
    return builder.build()


def arm():
    """Three joints of different types under gravity, with random placements."""
    return random_tree(31, [-1, 0, 1], ("revolute", "screw", "universal"))


def floater(stops=True):
    """A floating hull with an elastic arm, a rotated hand and a fin of two axes; all joints have friction."""
    rng = np.random.default_rng(5)
    builder = rb.ModelBuilder(gravity=(0.3, -1.0, -9.81))
    drag = rb.PassiveForces(damping=(0.5, 0.6, 0.7, 0.1, 0.2, 0.3))
    sticky = rb.PassiveForces(
        stiffness=2.0, rest_position=0.2, cubic_stiffness=1.0, friction=0.3, static_friction=0.5, friction_velocity=0.3
    )
    limits = {"stop_lower": -0.4, "stop_upper": 0.4, "limit_stiffness": 50.0, "limit_damping": 0.5} if stops else {}
    builder.add_body("hull", joint=rb.Free(), inertia=random_inertia(rng), passive=drag)
    builder.add_body(
        "arm",
        parent="hull",
        joint=rb.Revolute((1, 2, 3)),
        placement=rb.Pose((0.3, 0.1, 0.2), random_rotation(rng)),
        inertia=random_inertia(rng),
        rotor_inertia=1e-5,
        gear_ratio=50.0,
        passive=sticky,
    )
    builder.add_body("hand", parent="arm", joint=rb.Fixed(), placement=rb.Pose((0.2, -0.1, 0.4), random_rotation(rng)))
    builder.add_body("tip", parent="arm", joint=rb.Fixed(), placement=rb.Pose((0.2, 0.3, 0.1)))
    builder.add_body(
        "fin",
        parent="hull",
        joint=rb.Universal(),
        placement=rb.Pose((-0.3, 0.1, 0.0), random_rotation(rng)),
        inertia=random_inertia(rng),
        passive=rb.PassiveForces(damping=0.2, **limits),
    )
    return builder.build()


def start(model, n, seed=0):
    q, qd = model.random_state(np.random.default_rng(seed), n)
    if model.nq == model.nv:
        return 0.5 * q, 0.5 * qd
    q[:, 7:] *= 0.2
    return q, 0.5 * qd


def columns(*numbers):
    """Initial states of one coordinate, one per sample."""
    return np.array(numbers, float)[:, None]


def linear_motion(A, x0, times):
    """x(t) of dx/dt = A x, (times, states)."""
    return np.array([expm(A * t) @ x0 for t in times])


def reference_motion(rate, y0, times, **settings):
    """The solution of SciPy's DOP853, (times, states)."""
    settings = {"rtol": 1e-12, "atol": 1e-13} | settings
    return solve_ivp(rate, (0, times[-1]), y0, method="DOP853", t_eval=times, **settings).y.T


WAVE = {"amplitude": [[0.3, 0.1], [-0.2, 0.05], [0.4, 0.0]], "angular_frequency": [2.0, 5.0], "phase": [0.3, 1.0]}


def wave(order, offset=0.0):
    """A derivative of those sines, as a signal again."""
    a, w, phase = (np.array(WAVE[name]) for name in ("amplitude", "angular_frequency", "phase"))
    return rb.Signal.sines(a * w**order, w, phase=phase + order * np.pi / 2, offset=offset)


def push(t, q, qd, parameters, out):
    out[1] += parameters[0] * np.sin(parameters[1] * t)
    out[6] -= 0.1 * qd[6]


def above_ramp(t, q, qd, parameters, out):
    out[0] = q[0] - (parameters[0] + parameters[1] * t)


def everything(n, of=slice(None)):
    """All types of actions on the floater, with values per sample for n samples; `of` selects samples."""
    rng = np.random.default_rng(11)
    a, b, c, d, e = rng.uniform(0.5, 1.5, size=(5, n))[:, of]
    knots, points = rng.normal(size=(n, 5))[of], rng.normal(size=(n, 3))[of]
    times = np.linspace(0, 0.5, 5)
    drives = [
        rb.PID("arm", rb.Signal.sines(a[..., None], 4.0), kp=5 * b, kd=c, ki=d, limit=4 * e, gravity_compensation=True),
        rb.PrescribedVelocity("fin", rb.Signal.table(times, knots), dof=0),
        rb.PrescribedForce("fin", rb.Signal.table(times, knots, interpolation="linear"), dof=1),
        rb.UserForces(push, parameters=np.stack([a, b], -1)),
    ]
    forces = [
        rb.Wrench("hull", force=(rb.Signal.polynomial(knots[..., :3]), 0.0, a), point=points),
        rb.Wrench("hand", moment=points),
        rb.Wrench("fin", force=points, axes="body"),
    ]
    events = [
        rb.Event("fin", value=0.1 * a, dof=1, stop=False),
        rb.Event(function=above_ramp, parameters=np.stack([b, c], -1), stop=False),
    ]
    return {"drives": drives, "forces": forces, "events": events}
