"""A batch of zero samples works in every function, with a shared model and with parameters of each sample.

Nothing is simulated, so that shapes and checks are all that is left. The tests therefore run in plain Python.
"""

import inspect

import numpy as np
import pytest

import rbchain as rb

from .conftest import mechanism
from .quantities import ARGUMENTS, computed, random_state, shapes

pytestmark = pytest.mark.plain_python

EMPTY = [(0,), (3, 0), (0, 2)]
SIGNAL = rb.Signal


def user_forces(t, q, qd, parameters, out):
    out[0] = -parameters[0] * q[0]


def hold(t, q, qd, parameters, computed, out):
    out[0] = computed.gravity_forces[0] - q[0]


def controller(t, q, qd, parameters):
    return -parameters[..., :1] * q[..., :1]


def guard(t, q, qd, parameters, out):
    out[0] = q[0] - 1.0


def slider_with_ball():
    """A slide and a hinge with a spring, a damper and limits, in water."""
    builder = rb.ModelBuilder(gravity=(0, 0, -9.81), fluid_density=1000.0)
    water = rb.Immersion(volume=1e-4, linear_damping=(0.1,) * 6)
    limits = rb.JointLimits(lower=-1.0, upper=1.0)
    builder.add_body(
        "slide",
        joint=rb.Prismatic((1, 0, 0)),
        limits=limits,
        inertia=rb.Inertia.sphere(0.1, mass=1.0),
        passive=rb.PassiveForces(stiffness=1.0, damping=0.1),
        immersion=water,
    )
    inertia = rb.Inertia.rod(0.5, mass=1.0, cg=(0.25, 0, 0))
    builder.add_body("arm", parent="slide", joint=rb.Revolute((0, 1, 0)), inertia=inertia)
    return builder.build()


def closed_chain():
    """A four-bar linkage with a damper."""
    builder, hinge = rb.ModelBuilder(gravity=(0, -9.81, 0)), rb.Revolute(axis=(0, 0, 1))
    rod = rb.Inertia.rod(0.5, mass=1.0, cg=(0.25, 0, 0))
    builder.add_body("slide", joint=hinge, inertia=rod, passive=rb.PassiveForces(damping=0.1))
    builder.add_body("arm", parent="slide", joint=hinge, placement=rb.Pose((0.5, 0, 0)), inertia=rod)
    builder.add_body("rocker", joint=hinge, placement=rb.Pose((0.6, 0, 0)), inertia=rod)
    builder.add_constraint(rb.BallConstraint("tip", "arm", "rocker", point_a=(0.5, 0, 0), point_b=(0.5, 0, 0)))
    return builder.build()


MODELS = {"open tree": slider_with_ball, "closed chain": closed_chain}


def shared_or_of_each_sample(model, kind, batch):
    """The model, or the same model with masses and points of zero samples."""
    if kind == "shared":
        return model
    fields = {"mass": np.ones((*batch, model.n_bodies)), "gravity": np.ones((*batch, 3))}
    return model.vary(**fields)


@pytest.fixture(params=["shared", "of each sample"])
def parameters(request):
    return request.param


@pytest.mark.parametrize("batch", EMPTY)
@pytest.mark.parametrize("name", ARGUMENTS)
def test_every_quantity_has_no_samples(name, batch, parameters):
    original = mechanism("small_floating_tree")
    model = shared_or_of_each_sample(original, parameters, batch)
    found = computed(model, name, random_state(original, batch))
    assert [x.shape for x in found] == [(*batch, *shape) for shape in shapes(model, name)]


SPRING = rb.SpringDamper(None, "arm", point_a=(0, 1, 0), point_b=(0, 0, 0), stiffness=10.0)
BUSHING = rb.Bushing(None, "slide", stiffness=np.eye(6))
#: The methods of `Model` with states that are not among the quantities: their results, and the shapes for one sample.
OTHER_METHODS = {
    "assemble": (lambda m, q, qd: m.assemble(q), lambda m: [(m.nq,)]),
    "assemble, NaN": (lambda m, q, qd: m.assemble(q, fixed=["slide"], on_failure="ignore"), lambda m: [(m.nq,)]),
    "assemble_velocities": (lambda m, q, qd: m.assemble_velocities(q, qd), lambda m: [(m.nv,)]),
    "constraint_residual": (lambda m, q, qd: m.constraint_residual(q), lambda m: [(3 * len(m.constraint_names),)]),
    "constraint_jacobian": (
        lambda m, q, qd: m.constraint_jacobian(q),
        lambda m: [(3 * len(m.constraint_names), m.nv)],
    ),
    "constraint_forces": (
        lambda m, q, qd: m.constraint_forces(q, qd, qd),
        lambda m: [(3 * len(m.constraint_names),)],
    ),
    "passive_forces": (lambda m, q, qd: m.passive_forces(q, qd), lambda m: [(m.nv,)]),
    "elastic_energy": (lambda m, q, qd: m.elastic_energy(q, [SPRING, BUSHING]), lambda m: [()]),
    "wrenches_between_bodies": (
        lambda m, q, qd: m.wrenches_between_bodies(q, qd, [SPRING, BUSHING]),
        lambda m: [(m.n_bodies, 6)],
    ),
    "derivatives_between_bodies": (
        lambda m, q, qd: m.derivatives_between_bodies(q, qd, [SPRING, BUSHING]),
        lambda m: [(m.nv, m.nv)] * 2,
    ),
}


@pytest.mark.parametrize("batch", EMPTY)
@pytest.mark.parametrize("method", OTHER_METHODS)
def test_every_other_method_with_states_has_no_samples(method, batch, parameters):
    original = closed_chain()
    model = shared_or_of_each_sample(original, parameters, batch)
    q, qd = np.zeros((*batch, original.nq)), np.zeros((*batch, original.nv))
    compute, shapes_of_one = OTHER_METHODS[method]
    found = compute(model, q, qd)
    found = found if isinstance(found, tuple) else (found,)
    assert [np.shape(x) for x in found] == [(*batch, *shape) for shape in shapes_of_one(original)]


EDITS = {
    "vary": lambda m, batch: m.vary(damping=np.ones((*batch, m.nv))),
    "vary twice": lambda m, batch: m.vary(mass=np.ones((*batch, m.n_bodies))).vary(gravity=(0, 0, -1)),
    "with_payload": lambda m, batch: m.with_payload("arm", mass=np.ones(batch), cg=np.ones((*batch, 3))),
    "with_payload, Inertia": lambda m, batch: m.vary(mass=np.ones((*batch, m.n_bodies))).with_payload(
        "arm", body=rb.Inertia.sphere(0.1, mass=1.0)
    ),
    "with_motor": lambda m, batch: m.with_motor("arm", 9.0, rotor_inertia=1e-3, gear_ratio=10.0).vary(
        gravity=np.ones((*batch, 3))
    ),
}


@pytest.mark.parametrize("batch", EMPTY)
@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_model_has_no_samples(edit, batch):
    model = EDITS[edit](slider_with_ball(), batch)
    assert model.batch_shape == batch
    state = np.zeros((*batch, model.nv))
    assert model.forward_dynamics(state, state, state).shape == state.shape
    assert model.simulate(state, state, 0.1, save_at=3).q.shape == (*batch, 3, model.nq)
    assert (model.nominal or model).batch_shape == ()


#: Everything that acts, and events, for n samples.
ACTING = {
    "nothing": lambda n: {},
    "tau": lambda n: {"tau": 1.0},
    "PID": lambda n: {"drives": [rb.PID("slide", 1.0, kp=np.ones(n), kd=1.0, ki=2.0, limit=3.0)]},
    "PID of a moving reference": lambda n: {"drives": [rb.PID("slide", SIGNAL.sines(1.0, 2.0), kp=1.0)]},
    "ComputedTorque": lambda n: {"drives": [rb.ComputedTorque("slide", 1.0, kp=1.0, kd=1.0)]},
    "gravity compensation": lambda n: {"drives": [rb.PID("slide", 1.0, kp=1.0, gravity_compensation=True)]},
    "prescribed force": lambda n: {"drives": [rb.PrescribedForce("slide", SIGNAL.table([0, 1], [0, 1]))]},
    "prescribed force of each sample": lambda n: {"drives": [rb.PrescribedForce("slide", np.ones(n))]},
    "linear table of each sample": lambda n: {
        "drives": [rb.PrescribedForce("slide", SIGNAL.table([0, 1], np.ones((n, 2)), interpolation="linear"))]
    },
    "cubic table of each sample": lambda n: {
        "drives": [rb.PrescribedForce("slide", SIGNAL.table([0, 1, 2, 3], np.ones((n, 4))))]
    },
    "sines of each sample": lambda n: {"drives": [rb.PrescribedForce("slide", SIGNAL.sines(np.ones((n, 2)), 3.0))]},
    "polynomial of each sample": lambda n: {"drives": [rb.PID("slide", SIGNAL.polynomial(np.ones((n, 2))), kp=1.0)]},
    "prescribed acceleration": lambda n: {"drives": [rb.PrescribedAcceleration("slide", 1.0)]},
    "prescribed velocity": lambda n: {"drives": [rb.PrescribedVelocity("slide", SIGNAL.sines(1.0, 2.0))]},
    "prescribed position": lambda n: {"drives": [rb.PrescribedPosition("slide", SIGNAL.sines(1.0, 2.0))]},
    "user forces": lambda n: {"drives": [rb.UserForces(user_forces, parameters=np.ones((n, 1)))]},
    "sampled PID": lambda n: {"drives": [rb.Sampled(rb.PID("slide", 1.0, kp=1.0), period=0.01, delay=np.zeros(n))]},
    "sampled user forces": lambda n: {
        "drives": [rb.Sampled(rb.UserForces(user_forces, parameters=[1.0]), period=0.01)]
    },
    "sampled user forces with needs": lambda n: {
        "drives": [rb.Sampled(hold, period=0.01, needs=rb.Needs(gravity_forces=True, model="own"))]
    },
    "sampled function of the batch": lambda n: {
        "drives": [rb.Sampled(rb.UserForces(controller, parameters=[1.0]), period=0.01)]
    },
    "encoder": lambda n: {
        "drives": [rb.Sampled(rb.PID("slide", 1.0, kp=1.0), period=0.01, sensors=[rb.Encoder("slide", noise=0.1)])]
    },
    "actuator": lambda n: {
        "drives": [
            rb.PID("slide", 1.0, kp=1.0),
            rb.Actuator("slide", time_constant=0.1, stall_torque=np.ones(n), no_load_speed=9.0),
        ]
    },
    "wrench": lambda n: {"forces": [rb.Wrench("arm", force=np.ones((n, 3)))]},
    "wrench of signals": lambda n: {"forces": [rb.Wrench("arm", moment=(0, SIGNAL.sines(1.0, 2.0), 0))]},
    "current": lambda n: {"forces": [rb.Current((0.1, 0, 0))]},
    "spring": lambda n: {
        "forces": [rb.SpringDamper(None, "arm", point_a=(0, 1, 0), point_b=(0, 0, 0), stiffness=np.ones(n))]
    },
    "bushing": lambda n: {"forces": [BUSHING]},
    "dry friction": lambda n: {"forces": [rb.DryFriction("slide", np.ones(n))]},
    "hard stops": lambda n: {"forces": [rb.HardStops("slide", restitution=np.ones(n))]},
    "contact": lambda n: {
        "forces": [
            rb.SphereContact(
                "arm",
                point=(0.5, 0, 0),
                radius=0.1,
                plane_point=(0, 0, -2),
                plane_normal=(0, 0, 1),
                friction=np.ones(n),
            )
        ]
    },
    "contact of a disc": lambda n: {
        "forces": [
            rb.EllipsoidContact(
                "arm",
                point=(0.5, 0, 0),
                semi_axes=np.tile(np.diag((0.1, 0.1, 0)), (n, 1, 1)),
                plane_point=(0, 0, -2),
                plane_normal=(0, 0, 1),
            )
        ]
    },
    "contact of spheres": lambda n: {
        "forces": [
            rb.SphereSphereContact("arm", None, point_a=(0.5, 0, 0), point_b=(9, 0, 0), radius_a=0.1, radius_b=0.1)
        ]
    },
    "contact of capsules": lambda n: {
        "forces": [
            rb.CapsuleCapsuleContact(
                "arm",
                None,
                point_a=(0.5, 0, 0),
                point_b=(9, 0, 0),
                half_axis_b=np.tile((0, 1, 0), (n, 1)),
                radius_a=0.1,
                radius_b=0.1,
            )
        ]
    },
    "event": lambda n: {"events": [rb.Event("slide", value=1.3, stop=False)]},
    "stop": lambda n: {"events": [rb.Event("slide", value=np.ones(n), stop=True)]},
    "user event": lambda n: {"events": [rb.Event(function=guard, stop=True)]},
}
RANDOM = {
    "noise": lambda n: SIGNAL.noise(density=[1.0, 1.0], frequencies=[0.5, 5.0]),
    "noise of each sample": lambda n: SIGNAL.noise(1.0, [0.5, 5.0], factor=np.ones(n), offset=np.ones(n)),
    "ornstein_uhlenbeck": lambda n: SIGNAL.ornstein_uhlenbeck(std=np.ones(n), correlation_time=0.3),
    "random_walk": lambda n: SIGNAL.random_walk(intensity=1.0, interval=0.01),
    "sea_state": lambda n: SIGNAL.sea_state(significant_wave_height=2.0, peak_period=8.0, quantity="elevation"),
}
for name, signal in RANDOM.items():
    ACTING |= {
        f"{name} as a force": lambda n, s=signal: {"drives": [rb.PrescribedForce("slide", s(n))]},
        f"{name} as a reference": lambda n, s=signal: {"drives": [rb.PID("slide", s(n), kp=1.0)]},
        f"{name} in a wrench": lambda n, s=signal: {"forces": [rb.Wrench("arm", force=(0, s(n), 0))]},
    }
METHODS = {
    "rk45": {},
    "dop853": {"method": "dop853"},
    "rosenbrock": {"method": "rosenbrock"},
    "radau": {"method": "radau"},
    "rk4": {"method": "rk4", "step": 0.05},
    "implicit": {"method": "implicit", "step": 0.05},
    "moreau": {"method": "moreau", "step": 0.05},
}


@pytest.mark.slow_cases("closed chain")
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("acting", ACTING)
def test_every_simulation_has_no_samples(acting, kind, parameters):
    """What a method refuses for one sample, it refuses with the same message for none."""
    original = MODELS[kind]()
    model = shared_or_of_each_sample(original, parameters, (0,))
    q, qd = np.zeros((0, original.nq)), np.zeros((0, original.nv))
    for method in METHODS.values():
        try:
            motion = model.simulate(q, qd, 0.1, save_at=3, **ACTING[acting](0), **method)
        except rb.ArgumentError as error:
            assert str(error) == refusal_of_one_sample(original, ACTING[acting](1), method)
            continue
        assert (motion.q.shape, motion.qd.shape, motion.tau.shape) == ((0, 3, model.nq), *[(0, 3, model.nv)] * 2)
        assert (motion.status.shape, motion.end_time.shape, motion.success) == ((0,), (0,), True)
        assert [record.t.shape[0] for record in motion.events] == [0] * len(ACTING[acting](0).get("events", ()))


def refusal_of_one_sample(model, acting, method):
    q = model.neutral()[None] if not model.constraint_names else model.assemble([[1.2, -1.0, 1.5]])
    with pytest.raises(rb.ArgumentError) as found:
        model.simulate(q, np.zeros((1, model.nv)), 0.1, save_at=3, **acting, **method)
    return str(found.value)


def resting(n, **settings):
    """A simulation of n samples in which all kinds of results are recorded."""
    model = slider_with_ball()
    forces = [SPRING, rb.Wrench("arm", force=(0, 1.0, 0))]
    events = [rb.Event("slide", value=0.3, stop=False)]
    q, qd = np.zeros((2, n, 2))
    return model.simulate(q, qd, 0.1, method="rk4", step=0.05, forces=forces, events=events, save_at=3, **settings)


def test_every_result_of_a_simulation_has_no_samples(tmp_path):
    motion = resting(0)
    assert (motion.success, motion.message) == (True, "")
    assert motion.qdd.shape == (0, 3, 2)
    assert motion.elastic_energy.shape == (0, 3)
    assert motion.to_xarray().sizes["sample"] == 0
    motion.save(tmp_path / "nothing.npz")
    assert rb.load_motion(tmp_path / "nothing.npz").q.shape == (0, 3, 2)
    assert len(motion.to_dataframe()) == 0


@pytest.mark.parametrize("name", ["contact_forces", "contact_residual", "impacts", "sticking"])
def test_contacts_of_no_samples_have_no_records(name):
    def simulated(n):
        ball = rb.SphereContact("arm", point=(0.5, 0, 0), radius=0.1, plane_point=(0, 0, -2), plane_normal=(0, 0, 1))
        forces = [ball, rb.DryFriction("slide", 0.1)]
        return slider_with_ball().simulate(
            *np.zeros((2, n, 2)), 0.1, forces=forces, method="moreau", step=0.05, save_at=2
        )

    none, one = getattr(simulated(0), name), getattr(simulated(1), name)
    if isinstance(one, tuple):
        assert [record.count.shape for record in none] == [(0,) for _ in one]
    else:
        assert none.shape == (0, *one.shape[1:])


def test_a_sample_of_an_empty_batch_is_refused():
    with pytest.raises(rb.ArgumentError, match="0"):
        resting(0)[0]


def test_states_of_edited_models_have_no_samples():
    model, (q, qd) = slider_with_ball(), np.zeros((2, 0, 2))
    assert [x.shape for x in model.lock_state(["arm"], q, qd)] == [(0, 1), (0, 1)]
    floating = mechanism("small_floating_tree")
    q, qd = floating.random_state(1, 0)
    assert (q.shape, qd.shape) == ((0, floating.nq), (0, floating.nv))
    body = floating.body_names[0]
    rerooted = floating.reroot(body)
    assert [x.shape for x in floating.reroot_state(body, q, qd)] == [(0, rerooted.nq), (0, rerooted.nv)]


def test_parameters_cannot_be_identified_from_no_samples():
    with pytest.raises(rb.ArgumentError, match="motion"):
        rb.fit(slider_with_ball(), resting(0), ["mass"])


def test_every_method_of_a_model_with_states_is_tested():
    """Methods that take positions or parameters of samples."""
    tested = {name.removeprefix("relative_") for name in ARGUMENTS} | {name.partition(",")[0] for name in OTHER_METHODS}
    tested |= {"accelerations", "simulate", "lock_state", "reroot_state"}
    tested |= {"linearize", "modes", "frequency_response", "margins", "equilibrium"}  # in their own tests
    tested |= {"inverse_kinematics"}  # in a test of this name
    tested |= {"stepper"}  # in test_stepper_samples.py
    drawn = {"picture", "view"}  # of one state
    states = {"q", "qd", "q0", "q_guess"}
    methods = {
        name
        for name, value in inspect.getmembers(rb.Model, inspect.isfunction)
        if not name.startswith("_") and states & set(inspect.signature(value).parameters)
    }
    assert methods == tested | drawn
