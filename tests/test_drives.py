"""Drives, forces, events and signals: invalid ones are refused by name, and valid ones follow closed forms."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline, PPoly

import rbchain as rb

pytestmark = pytest.mark.plain_python
PASSIVE = rb.PassiveForces


def tree():
    """A free hull with a universal wrist, a frame turned on it and one not, and a slide of its own with a foot."""
    builder = rb.ModelBuilder()
    inertia = rb.Inertia(2.0, cg=(0.1, 0.2, 0.3), inertia=(0.3, 0.4, 0.5))
    builder.add_body("hull", joint=rb.Free(), inertia=inertia, joint_name="water")
    builder.add_body("wrist", parent="hull", joint=rb.Universal(), inertia=inertia)
    turned = rb.Pose((0.1, 0, 0), [[0, -1, 0], [1, 0, 0], [0, 0, 1]])
    builder.add_body("turned", parent="wrist", joint=rb.Fixed(), placement=turned)
    builder.add_body("straight", parent="wrist", joint=rb.Fixed(), placement=rb.Pose((0.1, 0, 0)))
    builder.add_body("ball", parent="wrist", joint=rb.Spherical(), inertia=inertia)
    builder.add_body("slide", joint=rb.Prismatic(), inertia=inertia)
    builder.add_body("ground", joint=rb.Fixed())
    return builder.build()


def slider(**passive):
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("slide", joint=rb.Prismatic(), inertia=rb.Inertia(2.0), passive=PASSIVE(**passive))
    return builder.build()


def simulate(model, batch=(), duration=1.0, **actions):
    """Simulate a short motion of a tree from rest."""
    q = np.zeros((*batch, model.nq))
    for kind, at in zip(model.joint_types, model.position_index, strict=True):
        if kind in ("free", "spherical"):
            q[..., at + {"free": 6, "spherical": 3}[kind]] = 1.0
    return model.simulate(
        q, np.zeros((*batch, model.nv)), duration, method="rk4", step=duration, **{"save_at": 2} | actions
    )


def refusal(error=rb.ArgumentError, model=None, **settings):
    return message_of(lambda: simulate(tree() if model is None else model, **settings), error)


def message_of(call, error=rb.ArgumentError):
    with pytest.raises(error) as refused:
        call()
    return str(refused.value)


def in_order(words, *parts):
    """Whether all parts occur in `words`, one after the other."""
    at = 0
    for part in parts:
        found = words.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return True


# --- joints by themselves ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "field", "expected"),
    [
        *[({field: -1e-9}, field, "zero or more") for field in ("damping", "friction", "static_friction")],
        *[({field: -1e-9}, field, "zero or more") for field in ("limit_stiffness", "limit_damping")],
        *[({field: 0.0}, field, "more than zero") for field in ("stribeck_velocity", "friction_velocity")],
        *[({field: -0.1}, field, "more than zero") for field in ("stribeck_velocity", "friction_velocity")],
        *[({field: np.inf}, field, "finite") for field in ("stiffness", "rest_position", "cubic_stiffness", "damping")],
        *[({field: np.nan}, field, "finite") for field in ("stiffness", "friction", "limit_damping")],
        ({"stop_upper": np.nan}, "stop_upper", "a number, or infinity for no stop"),
        *[({"friction_asymmetry": x}, "friction_asymmetry", "finite") for x in (np.nan, np.inf)],
        *[({"friction_asymmetry": x}, "friction_asymmetry", "of at most friction") for x in (-1e-9, 1e-9)],
        ({"friction": 2.0, "friction_asymmetry": -2.1}, "friction_asymmetry", "of at most friction"),
        ({"static_friction": 2.0, "friction_asymmetry": 1.0}, "friction_asymmetry", "of at most friction"),
        ({"stop_lower": 1.0, "stop_upper": 1.0, "limit_stiffness": 1.0}, "stop_lower", "stop_upper"),
        ({"stop_lower": 1.0, "stop_upper": -1.0, "limit_stiffness": 1.0}, "stop_lower", "stop_upper"),
        ({"stop_lower": np.inf, "limit_stiffness": 1.0}, "stop_lower", "stop_upper"),
        ({"stop_upper": 1.0}, "limit_stiffness", "more than zero, because the joint has a stop_lower or stop_upper"),
        ({"stop_lower": -1.0}, "limit_stiffness", "more than zero, because the joint has a stop_lower or"),
        ({"friction": 2.0, "static_friction": 1.0}, "static_friction", "at least friction, which is 2.0, or zero"),
    ],
)
def test_invalid_passive_forces_are_refused_with_body_and_field(given, field, expected):
    with pytest.raises(rb.ModelError) as refused:
        slider(**given)
    assert in_order(str(refused.value), field, expected), refused.value
    # and also if only one sample has them, in the second degree of freedom of the wrist
    model = tree()
    i = model.velocity_index[1] + 1
    fields = {name: np.tile(getattr(model, name), (4, 1)) for name in given}
    for name, value in given.items():
        fields[name][2, i] = value
    with pytest.raises(rb.ModelError) as refused:
        model.vary(**fields)
    assert in_order(str(refused.value), "'wrist' of sample 2", field, expected), refused.value


def test_a_varied_passive_field_is_checked_against_the_others():
    limited = slider(stop_lower=-1.0, stop_upper=1.0, limit_stiffness=10.0, friction=1.0, friction_asymmetry=-1.0)
    for field, value in (
        ("stop_upper", -2.0),
        ("limit_stiffness", 0.0),
        ("static_friction", 0.5),
        ("friction", 0.9),
        ("friction_asymmetry", 1.1),
    ):
        with pytest.raises(rb.ModelError, match=f"'slide'.*{field}|'slide'.*stop_lower"):
            limited.vary(**{field: [value]})
        with pytest.raises(rb.ModelError, match=r"'slide' of sample 1\b"):
            limited.vary(**{field: [[getattr(limited, field)[0]], [value]]})


@pytest.mark.parametrize("kind", [rb.Free, rb.Spherical])
@pytest.mark.parametrize(
    "given",
    [
        {"stiffness": 1.0},
        {"cubic_stiffness": -1.0},
        {"stop_lower": -1.0, "limit_stiffness": 1.0},
        {"stop_upper": 1.0, "limit_stiffness": 1.0},
    ],
)
def test_a_joint_with_a_quaternion_accepts_no_springs_or_stops(kind, given):
    with pytest.raises(rb.ModelError, match=f"'body'.*{kind.kind}.*no angle"):
        rb.ModelBuilder().add_body("body", joint=kind(), passive=PASSIVE(**given))
    rb.ModelBuilder().add_body("body", joint=kind(), passive=PASSIVE(damping=1.0, friction=2.0))
    model = tree()
    for field, value in given.items():
        if field != "limit_stiffness":
            message = rf"'(hull|ball)': {field} is .* (free|spherical) joint has no angle"
            with pytest.raises(rb.ModelError, match=message):
                model.vary(**{field: np.full(model.nv, value)})


@pytest.mark.parametrize("wrong", [np.ones(3), np.ones((2, 1)), np.ones((1, 2)), "much", None, [1.0, "x"], 1j])
def test_passive_forces_are_scalar_or_one_per_degree_of_freedom(wrong):
    with pytest.raises(rb.ModelError, match="damping"):
        rb.ModelBuilder().add_body("body", joint=rb.Universal(), passive=PASSIVE(damping=wrong))
    if np.shape(wrong) != (2, 1):  # a number for all dofs of each of two samples
        with pytest.raises(rb.ModelError, match="damping"):
            tree().vary(damping=wrong)


@pytest.mark.parametrize("passive", [1.0, {"damping": 1.0}, rb.PassiveForces])
def test_passive_must_be_a_passive_forces_object(passive):
    with pytest.raises(rb.ModelError, match=r"'body'.*passive.*PassiveForces"):
        rb.ModelBuilder().add_body("body", joint=rb.Revolute(), passive=passive)


def test_each_degree_of_freedom_has_its_own_passive_forces():
    builder = rb.ModelBuilder()
    passive = PASSIVE(stiffness=(1.0, 2.0, 3.0), damping=(4.0, 5.0, 6.0), rest_position=(0.1, 0.2, 0.3))
    builder.add_body("body", joint=rb.Planar(), inertia=rb.Inertia.sphere(0.1, mass=1.0), passive=passive)
    model = builder.build()
    found = model.passive_forces([1.0, 1.0, 1.0], [0.5, -0.5, 0.25])
    np.testing.assert_allclose(found, [-0.9 - 2.0, -1.6 + 2.5, -2.1 - 1.5], rtol=1e-15)
    assert model.stiffness.tolist() == [1.0, 2.0, 3.0]


# --- drives -----------------------------------------------------------------------------------------------------------

KINKED = rb.Signal.table([0.0, 0.5, 2.0], [0.0, 1.0, 0.0], interpolation="linear")
STAIRS = PPoly([[1.0, 2.0]], [0.0, 0.5, 2.0])
# Parabolas that meet in position and velocity: c[0] (t - t0)^2 + ...
SMOOTH = PPoly([[1.0, -1.0], [0.0, 1.0], [0.0, 0.25]], [0.0, 0.5, 2.0])
LEAPING = PPoly([[1.0, -1.0], [0.0, 1.0], [0.0, 0.35]], [0.0, 0.5, 2.0])


@pytest.mark.parametrize(
    ("drives", "parts"),
    [
        (
            lambda: [rb.PrescribedVelocity("slide", 0.0), rb.PrescribedForce("slide", 0.0)],
            ["PrescribedForce", "'slide'", "PrescribedVelocity prescribes", "freedom 0", "no effect"],
        ),
        (lambda: [rb.PrescribedVelocity("wrist", 0.0, dof=1)] * 2, ["'wrist'", "already", "degree of freedom 1"]),
        (lambda: [rb.PID("elbow", 0.0, kp=1.0)], ["PID", "no joint 'elbow'", "'water'", "'wrist'"]),
        (
            lambda: [rb.PID("hull", 0.0, kp=1.0)],
            ["no joint 'hull'", "The joint of body 'hull' is 'water'"],
        ),  # a body's name, whose joint has another
        (lambda: [rb.PID("slide", 0.0, kp=1.0, dof=1)], ["'slide'", "dof is 1", "1 degree of freedom; expected 0"]),
        (lambda: [rb.PID("wrist", 0.0, kp=1.0, dof=2)], ["'wrist'", "dof is 2", "2 degrees of freedom", "0 to 1"]),
        (lambda: [rb.PID("wrist", 0.0, kp=1.0, dof=-1)], ["'wrist'", "-1"]),
        (lambda: [rb.PID("wrist", 0.0, kp=1.0, dof=0.0)], ["'wrist'", "0.0"]),
        (lambda: [rb.PID("water", 0.0, kp=1.0, dof=0)], ["PID", "'water'", "a free joint has no angle"]),
        (
            lambda: [rb.ComputedTorque("ball", 0.0, kp=1.0, kd=1.0, dof=2)],
            ["ComputedTorque", "'ball'", "a spherical joint has no angle"],
        ),
        (
            lambda: [rb.PrescribedPosition("ball", 0.0, dof=1)],
            ["PrescribedPosition", "'ball'", "a spherical joint has no angle"],
        ),
        (
            lambda: [rb.PrescribedPosition("slide", KINKED)],
            ["PrescribedPosition", "'slide'", "velocity jumps at 0.5 s"],
        ),
        (
            lambda: [rb.PrescribedPosition("slide", STAIRS)],
            ["PrescribedPosition", "'slide'", "position jumps at 0.5 s"],
        ),
        (lambda: [rb.PrescribedPosition("slide", LEAPING)], ["'slide'", "position jumps at 0.5 s"]),
        (
            lambda: [rb.PrescribedVelocity("slide", STAIRS)],
            ["PrescribedVelocity", "'slide'", "velocity jumps at 0.5 s"],
        ),
        (lambda: [rb.PrescribedForce("slide", "fast")], ["PrescribedForce", "'slide'", "'fast'"]),
        (lambda: [rb.PrescribedForce("slide", np.nan)], ["PrescribedForce", "'slide'", "nan"]),
        (lambda: [rb.PrescribedForce("slide", None)], ["PrescribedForce", "'slide'"]),
        (lambda: [rb.PrescribedForce("slide", np.sin)], ["PrescribedForce", "'slide'", "UserForces"]),
        (lambda: [rb.PID("slide", 0.0, kp=-1.0)], ["'slide'", "kp", "-1", "at least 0"]),
        (lambda: [rb.PID("slide", 0.0, kp=1.0, kd=-1.0)], ["'slide'", "kd"]),
        (lambda: [rb.ComputedTorque("slide", 0.0, kp=1.0, kd=1.0, ki=-1.0)], ["'slide'", "ki"]),
        (lambda: [rb.PID("slide", 0.0, kp=np.nan)], ["'slide'", "kp", "nan"]),
        (lambda: [rb.PID("slide", 0.0, kp="stiff")], ["'slide'", "kp", "stiff"]),
        (lambda: [rb.PID("slide", 0.0, kp=1.0, limit=-5.0)], ["'slide'", "limit", "-5"]),
        (lambda: [rb.PrescribedForce("slide", 0.0, limit=np.nan)], ["'slide'", "limit", "nan"]),
        (lambda: [rb.UserForces("force")], ["function", "'force'", "function(t, q, qd, parameters, out)"]),
        (
            lambda: [rb.UserForces(print, parameters="many")],
            ["UserForces with function 'print'", "parameters", "'many'"],
        ),
        (lambda: [rb.Wrench("slide")], ["drives", "Wrench", "forces=[...]"]),
        (lambda: rb.PID("slide", 0.0, kp=1.0), ["drives", "list"]),
        (lambda: {"slide": rb.PID("slide", 0.0, kp=1.0)}, ["drives", "list"]),
    ],
)
def test_an_invalid_drive_is_refused_with_its_joint(drives, parts):
    words = message_of(lambda: simulate(tree(), drives=drives()))
    assert in_order(words, *parts), words


def test_sufficiently_smooth_signals_are_accepted():
    model = tree()
    for drive in (
        rb.PrescribedPosition("slide", SMOOTH),
        rb.PrescribedPosition("slide", CubicSpline([0.0, 0.5, 1.0, 2.0], [0.0, 1.0, 0.0, 3.0])),
        rb.PrescribedVelocity("slide", KINKED),
        rb.PrescribedVelocity("ball", KINKED, dof=2),
        rb.PrescribedAcceleration("slide", STAIRS),
        rb.PrescribedForce("slide", STAIRS),
        rb.PID("slide", KINKED, kp=1.0, kd=1.0),
    ):
        assert simulate(model, drives=[drive]).success


def test_a_signal_with_a_kink_in_one_sample_is_refused():
    values = np.zeros((4, 3))
    table = rb.Signal.table([0.0, 0.5, 2.0], values, interpolation="linear")
    assert simulate(slider(), (4,), drives=[rb.PrescribedPosition("slide", table)]).success
    values[2, 1] = 1e-3
    table = rb.Signal.table([0.0, 0.5, 2.0], values, interpolation="linear")
    assert "jumps" in refusal(model=slider(), batch=(4,), drives=[rb.PrescribedPosition("slide", table)])


def test_a_joint_with_a_prescribed_motion_has_no_constant_force():
    model = tree()
    tau = np.zeros((3, model.nv))
    drives = [rb.PrescribedVelocity("wrist", 1.0, dof=0)]
    i = model.velocity_index[1]
    tau[:, i + 1] = 1.0
    assert simulate(model, (3,), drives=drives, tau=tau).success
    tau[1, i] = 1e-9
    words = refusal(model=model, batch=(3,), drives=drives, tau=tau)
    assert in_order(words, "'wrist'", "tau"), words
    assert simulate(model, (3,), drives=[rb.PrescribedForce("wrist", 1.0, dof=0)], tau=tau).success


@pytest.mark.parametrize("batch", [(), (3,), (2, 3), (3, 2)])
@pytest.mark.parametrize("shape", [(3,), (2,), (2, 3), (3, 2), (1,)])
def test_values_per_sample_must_have_the_shape_of_the_batch(batch, shape):
    """Gains, values and parameters may also have only the last axes of the batch, as in NumPy's broadcasting."""
    model, numbers = slider(), np.full(shape, 0.5)
    as_numpy = batch == np.broadcast_shapes(batch, shape) if shape[-1:] in ((1,), batch[-1:]) else False
    of_chains = [
        {"drives": [rb.PID("slide", 0.0, kp=numbers)]},
        {"drives": [rb.PID("slide", 0.0, kp=1.0, limit=numbers)]},
        {"drives": [rb.UserForces(lambda t, q, qd, parameters, out: None, parameters=numbers[..., None])]},
        {"events": [rb.Event("slide", value=numbers, stop=True)]},
        {"forces": [rb.Wrench("slide", point=np.zeros((*shape, 3)))]},
    ]
    signals = [
        {"drives": [rb.PrescribedForce("slide", numbers)]},
        {"drives": [rb.PrescribedForce("slide", rb.Signal.sines(numbers[..., None], 1.0))]},
        {
            "drives": [
                rb.PrescribedForce("slide", rb.Signal.table([0, 1], np.zeros((*shape, 2)), interpolation="linear"))
            ]
        },
        {"forces": [rb.Wrench("slide", force=np.zeros((*shape, 3)))]},
        {"forces": [rb.Wrench("slide", moment=(0, 0, numbers))]},
    ]
    for actions, fits in [*((one, as_numpy) for one in of_chains), *((one, shape == batch) for one in signals)]:
        if fits:
            assert simulate(model, batch, **actions).success
        else:
            words = refusal(model=model, batch=batch, **actions)
            assert str(batch) in words, words
            found = (str(shape), str((*shape, 1)), str((*shape, 3)))
            assert any(text in words for text in found) or "array" in words, words


# --- signals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (lambda: rb.Signal.table([0, 2, 1], [0, 0, 0]), ["times", "[0.0, 2.0, 1.0]", "increasing"]),
        (lambda: rb.Signal.table([0, 1, 1], [0, 0, 0], interpolation="linear"), ["times", "increasing"]),
        (lambda: rb.Signal.table([0, 1, 2], [0, 0]), ["times", "(3,)", "(2,)"]),
        (lambda: rb.Signal.table([0], [0]), ["times", "(1,)"]),
        (lambda: rb.Signal.table([[0, 1, 2]], [0, 1]), ["times", "(1, 3)"]),
        (lambda: rb.Signal.table([0, np.inf], [0, 1]), ["times", "inf", "finite"]),
        (lambda: rb.Signal.table([0, 1], [0, np.nan]), ["values", "nan", "finite"]),
        (
            lambda: rb.Signal.table([0, 1], [0, 1], interpolation="quintic"),
            ["interpolation", "'quintic'", '"linear"', '"cubic"'],
        ),
        (lambda: rb.Signal.polynomial(1.0), ["coefficients", "()", "(..., m)"]),
        (lambda: rb.Signal.polynomial([]), ["coefficients", "(0,)"]),
        (lambda: rb.Signal.polynomial([1.0, 1j]), ["coefficients"]),
        (lambda: rb.Signal.polynomial([1.0, np.inf]), ["coefficients", "inf"]),
        (lambda: rb.Signal.sines("loud", 1.0), ["amplitude", "'loud'"]),
        (lambda: rb.Signal.sines(1.0, np.nan), ["angular_frequency", "nan"]),
        (lambda: rb.Signal.sines(1.0, 1.0, phase=[np.inf]), ["phase", "inf"]),
        (lambda: rb.Signal.sines(1.0, 1.0, offset=np.nan), ["offset", "nan"]),
        (lambda: rb.Signal.constant("x"), ["value", "'x'"]),
    ],
)
def test_an_invalid_signal_is_refused_with_its_argument(make, parts):
    with pytest.raises(rb.ArgumentError) as refused:
        make()
    assert in_order(str(refused.value), *parts), refused.value


@pytest.mark.parametrize("kind", ["linear", "cubic"])
def test_a_table_must_cover_the_whole_motion(kind):
    model = slider()
    for times in ([0.0, 0.5, 0.9], [0.1, 0.5, 1.0]):
        words = refusal(
            model=model, drives=[rb.PrescribedForce("slide", rb.Signal.table(times, [0, 1, 0], interpolation=kind))]
        )
        assert in_order(words, "'slide'", f"{times[0]:g} to {times[-1]:g} s", "0 to 1 s"), words
    for times in ([0.0, 0.5, 1.0], [-1.0, 0.5, 2.0]):
        table = rb.Signal.table(times, [0, 1, 0], interpolation=kind)
        assert simulate(model, drives=[rb.PrescribedForce("slide", table)]).success


def test_a_table_that_begins_too_late_is_refused():
    late = rb.Signal.table([0.5, 2.0], [0.0, 1.0], interpolation="linear")
    assert "0 to 1 s" in refusal(model=slider(), drives=[rb.PrescribedForce("slide", late)])


def test_a_bernstein_polynomial_is_converted_or_refused():
    """It is constant, 1; read as powers, its coefficients would mean 1 + t."""
    from scipy.interpolate import BPoly

    try:
        motion = simulate(slider(), drives=[rb.PrescribedForce("slide", BPoly([[1.0], [1.0]], [0.0, 1.0]))])
    except rb.ArgumentError:
        return
    np.testing.assert_allclose(motion.q[-1, 0], 0.25, rtol=1e-12)


TIMES = np.array([-0.7, 0.0, 0.2, 0.5, 0.50001, 1.3, 2.0, 2.9])
COEFFICIENTS = np.array([[1.0, -2.0, 0.5, 3.0, -0.25], [0.3, 0.2, -0.1, 0.7, 0.4]])


@pytest.mark.parametrize("order", range(6))
def test_polynomial_derivatives_agree_with_numpy(order):
    expected = [np.polynomial.Polynomial(row).deriv(order)(TIMES) for row in COEFFICIENTS]
    np.testing.assert_allclose(rb.Signal.polynomial(COEFFICIENTS)(TIMES, order), expected, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(rb.Signal.polynomial(COEFFICIENTS[1])(TIMES, order), expected[1], rtol=1e-13, atol=1e-13)


def test_sines_have_the_derivatives_of_their_closed_form():
    a, w, phase = np.array([1.5, 0.4]), np.array([2.0, 7.0]), np.array([0.3, -1.0])
    angles = w * TIMES[:, None] + phase
    signal = rb.Signal.sines(a, w, phase=phase, offset=0.25)
    closed = [a * np.sin(angles), a * w * np.cos(angles), -a * w**2 * np.sin(angles), -a * w**3 * np.cos(angles)]
    for order, expected in enumerate(closed):
        offset = 0.25 if order == 0 else 0.0
        np.testing.assert_allclose(signal(TIMES, order), offset + expected.sum(-1), rtol=0, atol=1e-12)
    # complex step without round-off: Im s(t + ih) / h with h = 1e-20
    stepped = (a * np.sin(w * (TIMES + 1e-20j)[:, None] + phase)).sum(-1).imag / 1e-20
    np.testing.assert_allclose(signal(TIMES, 1), stepped, rtol=0, atol=1e-12)


def test_sines_per_sample_and_shared_sines_add_to_their_offsets():
    each = rb.Signal.sines([[1.0], [2.0], [3.0]], 2.0, phase=[0.5], offset=[10.0, 20.0, 30.0])
    assert each.batch_shape == (3,)
    expected = np.array([[10.0], [20.0], [30.0]]) + np.array([[1.0], [2.0], [3.0]]) * np.sin(2 * TIMES + 0.5)
    np.testing.assert_allclose(each(TIMES), expected, rtol=1e-15)


def test_a_signal_at_one_time_is_one_number_per_sample():
    each = rb.Signal.sines(np.ones((4, 1)), 2.0, offset=np.arange(4.0))
    assert rb.Signal.sines(1.0, 2.0)(0.5).shape == ()
    np.testing.assert_allclose(each(0.5), np.arange(4.0) + np.sin(1.0), rtol=1e-15)


@pytest.mark.parametrize("order", range(4))
def test_a_cubic_table_agrees_with_the_spline_of_scipy(order):
    times = np.array([0.0, 0.5, 0.8, 1.7, 2.5])
    values = np.random.default_rng(0).normal(size=(3, 5))
    inside = np.array([0.0, 0.2, 0.5, 0.65, 1.7, 2.4999])
    spline = CubicSpline(times, values, axis=-1)
    expected = spline(inside, order)
    along_first = CubicSpline(times, values.T)  # (5, 3): the axis of the batch comes last
    for signal in (rb.Signal.table(times, values), rb.Signal.pieces(spline), rb.Signal.pieces(along_first)):
        assert signal.batch_shape == (3,)
        assert signal.end == 2.5
        np.testing.assert_allclose(signal(inside, order), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(rb.Signal.table(times, values[1])(inside, order), expected[1], rtol=1e-12, atol=1e-12)


def test_a_spline_along_another_axis_is_refused():
    values = np.zeros((2, 5, 3))
    with pytest.raises(rb.ArgumentError, match="axis 1"):
        rb.Signal.pieces(CubicSpline(np.arange(5), values, axis=1))


def test_a_linear_table_is_constant_beyond_its_ends():
    table = rb.Signal.table([0.0, 1.0, 3.0], [[0.0, 1.0, 0.0], [2.0, 2.0, 4.0]], interpolation="linear")
    at = [-1.0, 0.0, 0.25, 1.0, 2.0, 4.0]
    np.testing.assert_allclose(table(at), [[-1, 0, 0.25, 1, 0.5, -0.5], [2, 2, 2, 2, 3, 5]], rtol=1e-15)
    np.testing.assert_allclose(table(at, 1), [[1, 1, 1, -0.5, -0.5, -0.5], [0, 0, 0, 1, 1, 1]], rtol=1e-15)
    assert not table(at, 2).any()


def test_a_number_acts_as_a_constant_signal():
    """A force of 3 N on 2 kg, given as a number, an array per sample, a constant, a polynomial and a table."""
    model = slider()
    for value in (3.0, 3, np.float32(3), np.full(2, 3.0), rb.Signal.constant(3.0), rb.Signal.polynomial([3.0, 0.0])):
        motion = simulate(model, (2,), drives=[rb.PrescribedForce("slide", value)])
        np.testing.assert_allclose(motion.q[:, -1, 0], 0.75, rtol=1e-14)
    motion = simulate(model, drives=[rb.PrescribedForce("slide", PPoly([[3.0]], [0.0, 1.0]))])
    np.testing.assert_allclose(motion.q[-1, 0], 0.75, rtol=1e-14)


# --- wrenches ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrench", "parts"),
    [
        (lambda: rb.Wrench("ground"), ["'ground'", "fixed to the world", "moving body"]),
        (lambda: rb.Wrench("hull", axes="own"), ["'hull'", "axes", "'own'", "'world'", "'body'"]),
        (lambda: rb.Wrench("turned", axes="body"), ["'turned'", "rotated relative to its body 'wrist'"]),
        (lambda: rb.Wrench("hull", force=(1.0, 2.0)), ["'hull'", "force", "three"]),
        (lambda: rb.Wrench("hull", force=1.0), ["'hull'", "force", "1.0", "three"]),
        (lambda: rb.Wrench("hull", moment=np.zeros(2)), ["'hull'", "moment", "three"]),
        (lambda: rb.Wrench("hull", moment=np.array(1.0)), ["'hull'", "moment", "three"]),
        (lambda: rb.Wrench("hull", moment=None), ["'hull'", "moment", "None", "three"]),
        (lambda: rb.Wrench("hull", force=(1.0, "x", 0.0)), ["'hull'", "force", "'x'"]),
        (lambda: rb.Wrench("hull", force=(1.0, np.nan, 0.0)), ["'hull'", "force", "nan"]),
        (lambda: rb.Wrench("hull", force=(np.sin, 0.0, 0.0)), ["'hull'", "force", "sin"]),
        (lambda: rb.Wrench("hull", point=(0.0, 1.0)), ["'hull'", "point", "(2,)", "(3,)"]),
        (lambda: rb.Wrench("hull", point=0.0), ["'hull'", "point", "()"]),
        (lambda: rb.Wrench("hull", point=(0.0, np.nan, 1.0)), ["'hull'", "point", "nan"]),
        (lambda: rb.PID("slide", 0.0, kp=1.0), ["forces", "PID", "drives=[...]"]),
    ],
)
def test_an_invalid_wrench_is_refused_with_its_body(wrench, parts):
    words = message_of(lambda: simulate(tree(), forces=[wrench()]))
    assert in_order(words, *parts), words


def test_a_wrench_on_an_unknown_body_is_refused():
    words = refusal(rb.ModelError, forces=[rb.Wrench("keel")])
    assert in_order(words, "'keel'", "'hull'"), words
    # a single event instead of a list
    assert "list" in refusal(forces=rb.Wrench("hull"))


# --- events -----------------------------------------------------------------------------------------------------------


def height(t, q, qd, parameters, out):
    out[0] = q[0] - parameters[0]


@pytest.mark.parametrize(
    ("event", "parts"),
    [
        (lambda: rb.Event(), ["None", "one of the two"]),
        (lambda: rb.Event("slide", height, stop=True), ["'slide'", "function", "one of the two"]),
        (lambda: rb.Event("elbow", stop=True), ["Event", "no joint 'elbow'", "'slide'"]),
        (
            lambda: rb.Event("wrist", dof=2, stop=True),
            ["Event", "'wrist'", "dof is 2", "2 degrees of freedom", "0 to 1"],
        ),
        (lambda: rb.Event("slide", direction=2, stop=True), ["direction is 2", "1 (rising), -1 (falling) or 0"]),
        (lambda: rb.Event("slide", direction="up", stop=True), ["direction", "'up'"]),
        (lambda: rb.Event("slide", direction=0.5, stop=True), ["direction", "0.5"]),
        (lambda: rb.Event("slide", max_records=0, stop=True), ["max_records", "0", "from 1 to"]),
        (lambda: rb.Event("slide", max_records=1.5, stop=True), ["max_records", "1.5"]),
        (
            lambda: rb.Event("slide", quantity="acceleration", stop=True),
            ["'slide'", "quantity", "'acceleration'", "'position'", "'velocity'"],
        ),
        (lambda: rb.Event("water", dof=2, stop=True), ["'water'", "a free joint has no angle"]),
        (lambda: rb.Event("ball", dof=1, stop=True), ["'ball'", "a spherical joint has no angle"]),
        (lambda: rb.Event("slide", value=np.nan, stop=True), ["'slide'", "value", "nan"]),
        (lambda: rb.Event("slide", value="high", stop=True), ["'slide'", "value", "'high'"]),
        (lambda: rb.Event(function="height", stop=True), ["function", "'height'"]),
        (lambda: rb.Event(function=height, parameters=[np.nan], stop=True), ["parameters", "nan"]),
        (lambda: rb.PID("slide", 0.0, kp=1.0), ["event", "PID", "Event"]),
    ],
)
def test_an_invalid_event_is_refused_with_its_argument(event, parts):
    words = message_of(lambda: simulate(tree(), events=[event()]))
    assert in_order(words, *parts), words
    assert "list" in refusal(events=rb.Event("slide", stop=True))


def test_an_event_may_watch_the_velocity_of_a_free_joint():
    """A hull that falls for 1 s passes a downward velocity of 5 m/s."""
    motion = simulate(tree(), events=[rb.Event("water", value=-5.0, quantity="velocity", dof=2, stop=True)])
    assert motion.status == 4
    np.testing.assert_allclose(motion.events[0].t[0], 5 / 9.81, rtol=1e-9)


def test_an_event_in_time_is_found_in_a_slow_motion():
    """The trial Euler step of a slow motion is long: 10 s for 1 m at 1 mm/s."""

    def alarm(t, q, qd, parameters, out):
        out[0] = t - 1.0

    motion = slider().simulate([1.0], [1e-3], 3.0, events=[rb.Event(function=alarm, stop=True)], save_at=2)
    np.testing.assert_allclose(motion.events[0].t[0], 1.0, rtol=0, atol=1e-10)


def test_a_single_number_reaches_a_user_function_as_an_array_of_one():
    sizes = set()

    def look(t, q, qd, parameters, out):
        sizes.add(parameters.size)

    simulate(slider(), drives=[rb.UserForces(look, parameters=2.0)])
    assert sizes == {1}


@pytest.mark.quick
def test_max_records_limits_the_records_but_not_the_count():
    model = slider(stiffness=2.0 * np.pi**2)  # a period of 2 s: zero is passed at 0.5, 1.5, ...
    motion = model.simulate(
        [1.0], [0.0], 4.0, events=[rb.Event("slide", stop=False, max_records=3)], rtol=1e-10, save_at=2
    )
    assert motion.events[0].count == 4
    np.testing.assert_allclose(motion.events[0].t, [0.5, 1.5, 2.5], rtol=0, atol=1e-8)
    assert motion.events[0].q.shape == motion.events[0].qd.shape == (3, 1)


def test_each_event_has_its_own_max_records():
    events = [rb.Event("slide", stop=False, max_records=records) for records in (1, 3)]
    motion = simulate(slider(), events=events)
    assert [event.t.shape for event in motion.events] == [(1,), (3,)]


# --- motions ----------------------------------------------------------------------------------------------------------


def test_saved_times_do_not_change_an_implicit_motion():
    """With steps of 1/8 s, times and their differences are exact, so that the states are bit-identical."""
    drives = [rb.PrescribedForce("slide", rb.Signal.sines(3.0, 5.0, phase=0.3))]
    ends = [
        slider(damping=1.0).simulate([1.0], [0.1], 1.0, method="implicit", step=0.125, drives=drives, save_at=m).q[-1]
        for m in (2, 3, 9)
    ]
    assert ends[0] == ends[1] == ends[2]


def test_an_empty_batch_accepts_values_per_sample():
    motion = simulate(slider(), (0,), drives=[rb.PID("slide", 0.0, kp=np.ones(0))])
    assert motion.q.shape == (0, 2, 1)
    assert motion.tau.shape == (0, 2, 1)


@pytest.mark.quick
def test_varied_samples_have_their_own_actuator_forces_and_accelerations():
    """For a mass on a damper under a constant force, m a = F - d v in each sample at each time."""
    mass, damping = np.array([[1.0], [2.0], [4.0]]), np.array([[0.5], [1.5], [2.5]])
    model = slider().vary(mass=mass, damping=damping)
    force = np.array([1.0, 2.0, 3.0])
    motion = simulate(model, (3,), drives=[rb.PrescribedForce("slide", force)], save_at=4)
    assert (motion.tau[..., 0] == force[:, None]).all()
    np.testing.assert_allclose(motion.qdd[..., 0] * mass, force[:, None] - damping * motion.qd[..., 0], rtol=1e-14)


@pytest.mark.quick
@pytest.mark.parametrize(
    "settings", [{"rtol": 1e-6}, {"method": "rk4", "step": 0.1}, {"method": "implicit", "step": 0.1}]
)
def test_varied_samples_move_like_single_models(settings):
    """Bit-identical to a batch of one, and to a model and a state without batch axes."""
    damping, stiffness, q = (np.array([[a], [b], [c]]) for a, b, c in ((0.5, 1.0, 4.0), (3.0, 9.0, 30.0), (1, 2, 3)))
    limits = {"stop_upper": np.array([[0.5], [1.5], [9.0]]), "limit_stiffness": np.full((3, 1), 10.0)}
    fields = {"damping": damping, "stiffness": stiffness, **limits}
    drives = [rb.PID("slide", 0.3, kp=1.0, ki=0.5, limit=0.4)]
    many = slider().vary(**fields).simulate(q, 0.0 * q, 0.5, drives=drives, save_at=3, **settings)
    for i in range(3):
        part = slice(i, i + 1)
        own = slider().vary(**{name: value[part] for name, value in fields.items()})
        alone = own.simulate(q[part], 0.0 * q[part], 0.5, drives=drives, save_at=3, **settings)
        same = slider().vary(**{name: value[i] for name, value in fields.items()})
        single = same.simulate(q[i], [0.0], 0.5, drives=drives, save_at=3, **settings)
        for name in ("q", "qd", "tau", "qdd", "status", "steps"):
            assert np.array_equal(getattr(alone, name), getattr(many, name)[part]), name
            np.testing.assert_allclose(getattr(single, name), getattr(many, name)[i], rtol=1e-14, atol=1e-14)


@pytest.mark.plain_python
def test_a_signal_may_be_shorter_than_the_simulation_by_round_off():
    model, times = rb.Model.serial_chain(1, gravity=(0, 0, 0)), [0.0, 0.1, 0.2, 0.3]
    ramp = rb.PrescribedForce("link1", rb.Signal.table(times, times))
    motion = model.simulate([[0.0]], [[0.0]], 0.1 + 0.2, drives=[ramp], save_at=2)
    np.testing.assert_allclose(motion.tau[0, -1], 0.3, rtol=1e-12)
    with pytest.raises(rb.ArgumentError, match=r"defined from 0 to 0.3 s; .* from 0 to 0.30000000001 s"):
        model.simulate([[0.0]], [[0.0]], 0.30000000001, drives=[ramp], save_at=2)


@pytest.mark.parametrize(
    "actions",
    [
        {"drives": [rb.PrescribedForce("wrist", 1.0)]},
        {"drives": [rb.PrescribedVelocity("wrist", 1.0)]},
        {"drives": [rb.PID("wrist", 0.0, kp=1.0)]},
        {"drives": [rb.ComputedTorque("wrist", 0.0, kp=1.0, kd=1.0)]},
        {"drives": [rb.PrescribedForce("wrist", 1.0, dof=0), rb.Actuator("wrist", stall_torque=1.0)]},
        {"drives": [rb.Sampled(rb.PID("wrist", 0.0, kp=1.0, dof=0), sensors=[rb.Encoder("wrist")])]},
        {"events": [rb.Event("wrist", value=0.5, stop=True)]},
    ],
    ids=lambda actions: str(next(iter(actions.values()))[-1])[:20],
)
def test_an_action_on_a_joint_with_several_dofs_needs_the_number_of_one(actions):
    words = refusal(**actions)
    assert "joint 'wrist' has 2 degrees of freedom, but dof is not given; expected dof, an integer from 0 to 1" in words
