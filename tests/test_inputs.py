"""Inputs of a stepper are signals whose numbers the program changes between steps."""

import numpy as np
import pytest
from scipy.interpolate import PPoly

import rbchain as rb
from rbchain.acting.numeric_fields import SIGNAL

from .test_numeric_fields import CLASSES

plain = pytest.mark.plain_python
STEP, STEPS = 2.0**-8, 5
MASSES = np.array([[1.0, 1.0], [1.2, 0.9], [0.7, 1.4]])
Q = np.array([[0.3, -0.2], [0.1, 0.5], [-0.4, 0.2]])
VALUES = np.random.default_rng(0).uniform(-1.0, 1.0, (2, STEPS, len(Q)))  # of two inputs in each step


def arm():
    return rb.Model.serial_chain(2).vary(mass=MASSES)


def actions(a, b):
    """Drives and forces with two signals: alone, in sums, and in a piecewise polynomial."""
    hat = rb.Signal.table([0.0, 1.5 * STEP, 2.0], [0.0, 1.0, 0.0], interpolation="linear")
    drives = [
        rb.PrescribedForce("link1", a),
        rb.PID("link2", b, kp=3.0, kd=0.2, limit=2.0, feedforward=0.5 * a + rb.Signal.sines(0.2, 30.0)),
    ]
    return {"drives": drives, "forces": [rb.Wrench("link2", force=(np.array([1.0, 2.0, 0.5]) * b + hat, 0.1, a - b))]}


@plain
@pytest.mark.parametrize(("method", "dtype"), [("rk4", np.float64), ("implicit", np.float32), ("moreau", np.float64)])
def test_an_input_is_a_constant_signal_of_each_sample_during_a_call(method, dtype):
    settings = {"method": method, "step": STEP}
    q = Q.astype(dtype)
    stepper = arm().stepper(q, 0.0 * q, duration=1.0, **actions(rb.Input("a", 0.4), rb.Input("b")), **settings)
    np.testing.assert_array_equal(stepper.inputs["a"], 0.4)
    qd = 0.0 * q
    for k in range(STEPS):
        stepper.inputs["a"][:] = VALUES[0, k]
        stepper.inputs["b"] = VALUES[1, k]
        stepper.step()
        held = actions(*(rb.Signal.constant(x) for x in VALUES[:, k]))
        motion = arm().simulate(q, qd, STEP, t0=k * STEP, **held, **settings)
        q, qd = motion.end_q, motion.end_qd
        np.testing.assert_array_equal(stepper.q, q)
        np.testing.assert_array_equal(stepper.qd, qd)


@pytest.mark.slow
@plain
def test_an_input_that_changes_is_a_signal_of_pieces():
    step, changes = 0.05, 3
    breaks = step * np.arange(changes + 1)
    stepper = arm().stepper(Q, method="rk45", rtol=1e-7, drives=[rb.PID("link1", rb.Input("a"), kp=5.0, ki=3.0)])
    for k in range(changes):
        stepper.inputs["a"][:] = VALUES[0, k]
        stepper.advance(step)
    signal = rb.Signal.pieces(PPoly(VALUES[:1, :changes], breaks))
    motion = arm().simulate(Q, duration=breaks[-1], rtol=1e-7, drives=[rb.PID("link1", signal, kp=5.0, ki=3.0)])
    np.testing.assert_allclose(stepper.q, motion.end_q, rtol=0, atol=1e-6)
    np.testing.assert_allclose(stepper.qd, motion.end_qd, rtol=0, atol=1e-6)


def swimmer():
    """The arm, with links in water."""
    builder = rb.ModelBuilder(fluid_density=1000.0)
    for name, parent in (("link1", None), ("link2", "link1")):
        link = rb.Inertia(mass=1.0, cg=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
        water = rb.Immersion(volume=1e-3, linear_damping=(1.0, 2.0, 3.0, 0.0, 0.0, 0.1))
        joint = rb.Revolute((0, 0, 1))
        place = rb.Pose((1.0, 0, 0))
        builder.add_body(name, parent=parent, joint=joint, placement=place, inertia=link, immersion=water)
    return builder.build()


FIELDS = [(kind, field.name) for kind in CLASSES for field in kind.numeric_fields if field.kind == SIGNAL]


@plain
@pytest.mark.parametrize(("kind", "name"), FIELDS, ids=lambda x: getattr(x, "__name__", x))
def test_every_signal_can_be_an_input(kind, name):
    model = swimmer() if kind is rb.Current else arm()
    needed = {"kp": 2.0, "kd": 0.1, "reference": 0.2, "joint": "link1", "frame": "link2"}
    known = kind.__dataclass_fields__

    def one(value):
        value = (value, 0.1, value) if kind.numeric_field(name).shape else value
        made = kind(**({key: x for key, x in needed.items() if key in known} | {name: value}))
        return {"forces": [made]} if isinstance(made, (rb.Wrench, rb.Current)) else {"drives": [made]}

    stepper = model.stepper(Q, step=STEP, **one(rb.Input("a", 5.0)))
    stepper.inputs["a"][:] = VALUES[0, 0]
    stepper.step()
    motion = model.simulate(Q, duration=STEP, method="rk4", step=STEP, **one(VALUES[0, 0]))
    np.testing.assert_array_equal(stepper.q, motion.end_q)
    np.testing.assert_array_equal(stepper.qd, motion.end_qd)
    other = model.stepper(Q, step=STEP, **one(rb.Input("a", 5.0)))
    other.step()
    assert np.abs(other.qd - stepper.qd).max() > 1e-4  # the input acts


@plain
def test_a_digital_controller_reads_an_input_at_its_instants():
    drives = [rb.Sampled(rb.PID("link1", rb.Input("a"), kp=2.0), period=2 * STEP)]
    stepper = arm().stepper(Q, step=STEP, drives=drives)
    used = []
    for k in range(STEPS):
        stepper.inputs["a"] = VALUES[0, k]
        stepper.step()
        used.append(stepper.save().qd)
    held = VALUES[0, [0, 0, 1, 1, 3]]  # an instant at the end of a step belongs to this step
    q, qd = Q, 0.0 * Q
    for k in range(STEPS):
        if k % 2 == 0:
            force = 2.0 * (held[k] - q[:, 0])
        motion = arm().simulate(q, qd, STEP, method="rk4", step=STEP, tau=np.stack([force, 0 * force], -1), t0=k * STEP)
        q, qd = motion.end_q, motion.end_qd
        np.testing.assert_allclose(used[k], qd, rtol=1e-12, atol=1e-14)


def stepper_with_gust(**settings):
    force = rb.Wrench("link2", force=(rb.Input("gust", 1.0), rb.Input("lift"), 0.0))
    return arm().stepper(Q, step=STEP, forces=[force], on_failure="ignore", **settings)


@plain
def test_reset_sets_inputs_back_and_restore_returns_them():
    stepper = stepper_with_gust()
    gust = stepper.inputs["gust"]
    gust[:] = VALUES[0, 0]
    snapshot = stepper.save()
    stepper.step(3)
    expected = stepper.q.copy()
    stepper.reset([1], mass=[0.5, 0.5])
    np.testing.assert_array_equal(gust, [VALUES[0, 0, 0], 1.0, VALUES[0, 0, 2]])  # the array is live
    gust[:] = 0.0
    stepper.step(2)
    stepper.restore(snapshot)
    np.testing.assert_array_equal(gust, VALUES[0, 0])
    stepper.step(3)
    np.testing.assert_array_equal(stepper.q, expected)


@plain
@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1e300])
def test_a_sample_with_an_input_beyond_the_numbers_fails_alone(wrong):
    pid = rb.PID("link1", 1e10 * rb.Input("a"), kp=1.0, limit=2.0)  # the limit would hide it
    stepper, other = (arm().stepper(Q, step=STEP, drives=[pid], on_failure="ignore") for _ in range(2))
    stepper.inputs["a"][1] = wrong
    stepper.step()
    other.step()
    assert stepper.status.tolist() == [rb.Status.DONE, rb.Status.NOT_FINITE, rb.Status.DONE]
    assert stepper.t.tolist() == [STEP, 0.0, STEP]
    np.testing.assert_array_equal(stepper.q, np.stack([other.q[0], Q[1], other.q[2]]))
    stepper.reset([1])
    stepper.step()
    np.testing.assert_array_equal(stepper.q[1], other.q[1])


@plain
def test_a_failed_input_raises_or_warns_as_other_failures_do():
    stepper = arm()[0].stepper(Q[0], step=STEP, drives=[rb.PrescribedForce("link1", rb.Input("a"))])
    assert stepper.inputs["a"].shape == ()
    stepper.inputs["a"][...] = np.nan
    with pytest.raises(rb.SimulationError, match="not finite"):
        stepper.step()


@plain
def test_inputs_have_the_shape_of_the_batch():
    model = rb.Model.serial_chain(2).vary(mass=np.ones((2, 3, 2)))
    stepper = model.stepper([0.0, 0.0], step=STEP, drives=[rb.PrescribedForce("link1", rb.Input("a"))])
    stepper.inputs["a"][1, 2] = 3.0
    stepper.step()
    assert (stepper.q[..., 0] != stepper.q[0, 0, 0]).nonzero() == ([1], [2])


@plain
def test_wrong_names_shapes_and_values_are_refused():
    stepper = stepper_with_gust()
    assert list(stepper.inputs) == ["gust", "lift"]
    with pytest.raises(
        rb.UnknownNameError, match=r"no input 'gusts'; its inputs are \['gust', 'lift'\]; did you mean gust"
    ):
        stepper.inputs["gusts"]
    with pytest.raises(
        rb.ArgumentError, match=r"input 'gust' has shape \(2,\); expected an array that fits into \(3,\)"
    ):
        stepper.inputs["gust"] = [1.0, 2.0]
    with pytest.raises(rb.ArgumentError, match=r"name of an input is ''; expected a string"):
        rb.Input("")
    with pytest.raises(rb.ArgumentError, match="value of input 'a'"):
        rb.Input("a", np.nan)
    drives = [rb.PrescribedForce("link1", rb.Input("a", 1.0)), rb.PrescribedForce("link2", rb.Input("a"))]
    with pytest.raises(rb.ArgumentError, match="two inputs are called 'a'"):
        arm().stepper(Q, step=STEP, drives=drives)
    with pytest.raises(rb.ArgumentError, match="ki is a signal"):
        rb.PID("link1", 0.0, kp=1.0, ki=rb.Input("a", lower=0.0))
    with pytest.raises(rb.ArgumentError, match=r"kp is a signal.*A multiple of an rb.Input is possible"):
        rb.PID("link1", 0.0, kp=rb.Signal.sines(1.0, 2.0))
    for gain in (rb.Input("a"), -1.0 * rb.Input("a", lower=0.0), rb.Input("a", lower=0.0, upper=2.0) - 0.1):
        with pytest.raises(rb.ArgumentError, match=r"kp reaches -.* in the range of the input 'a'"):
            rb.PID("link1", 0.0, kp=gain)


GAIN = rb.Input("brake", [0.5, 0.0, 2.0], lower=0.0, upper=3.0)


@plain
@pytest.mark.parametrize(("method", "rtol"), [("rk4", 1e-9), ("implicit", 1e-2), ("rosenbrock", 1e-4)])
def test_an_input_as_a_gain_is_the_coefficient_of_a_damper(method, rtol):
    """m dv/dt = -(0.1 + 2 u) v has the solution v = v_0 exp(-(0.1 + 2 u) t / m)."""
    builder = rb.ModelBuilder()
    builder.add_body("cart", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(4.0))
    drive = rb.PID("cart", 0.0, kp=0.0, kd=0.1 + 2.0 * GAIN)
    settings = {"rtol": 1e-6} if method == "rosenbrock" else {"step": 1e-2}
    stepper = builder.build().stepper(np.zeros((3, 1)), np.ones((3, 1)), method=method, drives=[drive], **settings)
    expected = np.ones(3)
    for values in ([0.5, 0.0, 2.0], [1.0, 2.5, 9.0]):  # the last one is clipped
        stepper.inputs["brake"][:] = values
        stepper.advance(0.5) if method == "rosenbrock" else stepper.step(50)
        expected *= np.exp(-(0.1 + 2.0 * np.minimum(values, 3.0)) * 0.5 / 4.0)
    np.testing.assert_allclose(stepper.qd[:, 0], expected, rtol=rtol)


@plain
def test_an_input_as_a_gain_is_a_number_of_each_sample_elsewhere(tmp_path):
    """As in `simulate`, linear models, derivatives, files, samples and `fit`."""
    drives = [rb.PID("link1", 0.3, kp=2.0 * GAIN + 1.0, kd=GAIN)]
    numbers = [rb.PID("link1", 0.3, kp=2.0 * GAIN.value + 1.0, kd=GAIN.value)]
    settings = {"method": "rk4", "step": STEP, "derivatives": ("kp", "kd")}
    found, expected = (arm().simulate(Q, duration=0.1, drives=x, **settings) for x in (drives, numbers))
    np.testing.assert_array_equal(found.q, expected.q)
    for name in ("kp", "kd"):
        np.testing.assert_array_equal(found.derivatives[name], expected.derivatives[name])
    linear = [arm().linearize(0.0 * Q, drives=x).A for x in (drives, numbers)]
    np.testing.assert_array_equal(*linear)
    with pytest.raises(rb.ArgumentError, match="kp contains an input, but linearize does not support inputs that are"):
        arm().linearize(0.0 * Q, drives=drives, inputs=[GAIN])
    one = drives[0].of_sample(2, (3,))
    np.testing.assert_array_equal(
        arm()[2].simulate(Q[2], duration=0.1, method="rk4", step=STEP, drives=[one]).q, found.q[2]
    )


@plain
def test_a_file_and_other_values_of_an_input_as_a_gain(tmp_path):
    builder = rb.ModelBuilder()
    builder.add_body("cart", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(4.0))
    builder.add_drive(rb.PID("cart", 0.0, kp=1.0, kd=0.1 + 2.0 * rb.Input("brake", 0.5, lower=0.0)))
    model = builder.build()
    assert model.inputs == {"brake": 0.5}
    rb.save(model, tmp_path / "cart.toml")
    again = rb.load(tmp_path / "cart.toml")
    assert again.inputs == {"brake": 0.5}
    others = [x.with_inputs({"brake": 1.5}).accelerations([0.0], [1.0]) for x in (model, again)]
    np.testing.assert_allclose(others, -(0.1 + 2.0 * 1.5) / 4.0, rtol=1e-15)
    with pytest.raises(rb.ArgumentError, match="kd is a signal"):
        model.with_inputs({"brake": rb.Signal.sines(1.0, 2.0)})


@plain
def test_a_study_varies_a_gain_with_an_input():
    builder = rb.ModelBuilder()
    builder.add_body("cart", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(4.0))
    builder.add_drive(rb.PID("cart", 0.0, kp=0.0, kd=2.0 * rb.Input("brake", 0.5, lower=0.0)))
    simulation = rb.Simulation(0.5, method="rk4", step=0.01, qd=[1.0])
    vary = {"cart.kd": rb.Dispersion(rb.Uniform(0.9, 1.1), how="multiply")}
    study = rb.Study(builder.build(), samples=4, simulate=simulation, vary=vary)
    results = study.run(progress=False)
    factors = results["parameters"].values[:, 0]
    np.testing.assert_allclose(results["qd_final"].values[:, 0], np.exp(-factors * 0.5 / 4.0), rtol=1e-9)


def test_a_fit_of_other_parameters_keeps_an_input_as_a_gain():
    rod = rb.Model.serial_chain(1)
    drives = [rb.PID("link1", 0.3, kp=2.0, kd=rb.Input("brake", 0.5, lower=0.0))]
    measured = rod.simulate([0.5], duration=0.1, save_at=3, drives=drives)
    found = rb.fit(rod.replace(mass=1.1 * rod.mass), measured, parameters=["mass"], drives=drives)
    np.testing.assert_allclose(found.values["link1.mass"], rod.mass[0], rtol=1e-5)
    with pytest.raises(rb.ArgumentError, match="PID of joint 'link1': kd"):
        rb.fit(rod, measured, parameters=["kd"], drives=drives)


@plain
def test_other_calls_use_the_value_at_the_start(tmp_path):
    value, push = np.array([0.5, -0.2, 0.1]), rb.Input("push", [0.5, -0.2, 0.1])
    settings = {"duration": 0.05, "method": "rk4", "step": 0.01}
    motion = arm().simulate(Q, **settings, drives=(), forces=[rb.Wrench("link2", force=(push, 0, 2.0 * push))])
    same = arm().simulate(Q, **settings, drives=(), forces=[rb.Wrench("link2", force=(value, 0, 2.0 * value))])
    np.testing.assert_array_equal(motion.end_q, same.end_q)
    motion.save(tmp_path / "motion.npz")
    assert rb.load_motion(tmp_path / "motion.npz").forces == motion.forces


@plain
def test_a_model_in_a_file_keeps_its_inputs(tmp_path):
    builder = rb.ModelBuilder()
    builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=4.0))
    drive = rb.PrescribedForce("slide", rb.Input("push", 0.25))
    builder.add_drive(drive)
    rb.save(builder.build(), tmp_path / "slide.toml")
    model = rb.load(tmp_path / "slide.toml")
    assert model.drives == (drive,)
    stepper = model.stepper([[0.0]], step=0.5)
    stepper.inputs["push"][:] = 8.0
    stepper.step(2)
    np.testing.assert_allclose(stepper.q, 1.0, rtol=1e-15)  # 8 N on 4 kg for 1 s
    builder.add_drive(rb.PrescribedForce("slide", 2.0 * rb.Input("push", 0.25, -1.0, 2.0) - 1.0))
    rb.save(builder.build(), tmp_path / "slide.toml")
    assert rb.load(tmp_path / "slide.toml").drives == builder.build().drives
    builder.add_drive(rb.PrescribedForce("slide", rb.Input("push") + rb.Signal.sines(1.0, 2.0)))
    with pytest.raises(rb.ArgumentError, match="sum of an input and other signals, which a table cannot contain"):
        rb.save(builder.build(), tmp_path / "slide.toml")


@plain
def test_numbers_beyond_the_range_of_an_input_act_as_its_ends():
    force = rb.PrescribedForce("link1", 3.0 * rb.Input("a", 0.5, -1.0, 2.0))
    found = []
    for value in (5.0, 2.0, np.inf):
        stepper = arm()[0].stepper(Q[0], step=STEP, drives=[force])
        stepper.inputs["a"][...] = value
        stepper.step(2)
        found.append(stepper.q.copy())
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[2], found[1])
    for given in ({"value": 3.0, "upper": 2.0}, {"lower": 1.0, "value": 2.0, "upper": 0.0}):
        with pytest.raises(rb.ArgumentError, match="input 'a'"):
            rb.Input("a", **given)


@plain
def test_a_model_with_other_inputs():
    """A number is a start, and a signal takes the place of an input, in sums and multiples, also with noise."""
    wave, noise = rb.Signal.sines(0.2, 3.0), rb.Signal.ornstein_uhlenbeck(0.1, 1.0)
    drives = [
        rb.PID("link1", 2.0 * rb.Input("a", 0.0, -1.0, 1.0) + 0.1, kp=2.0, kd=0.3),
        rb.PrescribedForce("link2", noise - rb.Input("b")),
        rb.PrescribedForce("link2", rb.Input("a", 0.0, -1.0, 1.0)),
    ]
    builder = rb.ModelBuilder()
    builder.add_model(rb.Model.serial_chain(2))
    for drive in drives:
        builder.add_drive(drive)
    model = builder.build()
    assert model.inputs == {"a": 0.0, "b": 0.0}
    changed = model.with_inputs({"a": wave, "b": [0.5, 0.25]})
    assert changed.inputs == {"b": [0.5, 0.25]}
    same = [
        rb.PID("link1", 2.0 * wave + 0.1, kp=2.0, kd=0.3),
        rb.PrescribedForce("link2", noise - rb.Input("b", [0.5, 0.25])),
        rb.PrescribedForce("link2", wave),
    ]
    settings = {"method": "rk4", "step": 0.01}
    motions = [
        changed.simulate(Q[:2], duration=0.05, **settings),
        model.simulate(Q[:2], duration=0.05, drives=same, **settings),
    ]
    np.testing.assert_allclose(motions[0].q, motions[1].q, rtol=0, atol=1e-14)
    with pytest.raises(rb.UnknownNameError, match="the drives of the model have no input 'c'; they have"):
        model.with_inputs({"c": 1.0})
    with pytest.raises(rb.ArgumentError, match=r"value of input 'a' is 2.0; expected numbers from -1 to 1"):
        model.with_inputs({"a": 2.0})
    with pytest.raises(rb.ArgumentError, match="value of input 'a' is None; expected"):
        model.with_inputs({"a": None})


@plain
def test_models_that_are_added_keep_their_own_inputs():
    builder = rb.ModelBuilder()
    builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=4.0))
    builder.add_drive(rb.PrescribedForce("slide", rb.Input("push", 0.25)))
    both = rb.ModelBuilder()
    for prefix in ("left/", "right/"):
        both.add_model(builder.build(), prefix=prefix)
    assert both.build().inputs == {"left/push": 0.25, "right/push": 0.25}


@plain
def test_sums_and_derivatives_of_inputs():
    value = 2.0 * rb.Input("a", [1.0, 2.0]) + rb.Signal.polynomial([0.0, 3.0]) - rb.Input("b", 0.5) / 2
    np.testing.assert_allclose(value([0.0, 1.0]), [[1.75, 4.75], [3.75, 6.75]])
    np.testing.assert_array_equal(value.derivative()([0.0, 1.0]), [3.0, 3.0])
    assert rb.Input("a").derivative() == rb.Signal.constant(0.0)
    assert "inputs=['a', 'b']" in repr(value)


@plain
def test_an_empty_batch_has_inputs():
    drives = [rb.PrescribedForce("link1", rb.Input("push")), rb.PID("link2", rb.Input("goal"), kp=1.0)]
    stepper = rb.Model.serial_chain(2).stepper(np.zeros((0, 2)), step=1e-3, drives=drives)
    stepper.inputs["push"][:] = 1.0
    stepper.step(3)
    stepper.reset()
    assert stepper.inputs["push"].shape == (0,)
