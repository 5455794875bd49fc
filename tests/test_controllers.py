"""Controllers use a nominal model: by default the model before it was varied."""

import numpy as np
import pytest

import rbchain as rb

pytestmark = pytest.mark.plain_python
SLIDE_GRAVITY = 10.0


def slider(mass=2.0):
    """A mass on a vertical slide."""
    builder = rb.ModelBuilder(gravity=(0, 0, -SLIDE_GRAVITY))
    builder.add_body("slide", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia(mass))
    return builder.build()


MASSES = np.array([1.0, 2.0, 3.5])
DRIVES = {
    # the position error at rest, times gain and nominal mass: kp e = (m - nominal) g, or nominal kp e
    "PID": (lambda **k: rb.PID("slide", 0.3, kp=50.0, kd=20.0, gravity_compensation=True, **k), 50.0),
    "ComputedTorque": (lambda **k: rb.ComputedTorque("slide", 0.3, kp=25.0, kd=10.0, **k), 2.0 * 25.0),
}


def position_at_rest(model, drive):
    zero = np.zeros((len(MASSES), 1))
    motion = model.simulate(zero, zero, 8.0, drives=[drive], method="rk4", step=0.08, save_at=2)
    assert motion.success
    return motion.q[:, -1, 0]


@pytest.mark.slow
@pytest.mark.parametrize("kind", DRIVES)
def test_a_mass_unknown_to_the_controller_causes_the_static_error(kind):
    """The error is (m - nominal mass) g divided by the stiffness of the controller."""
    nominal = slider()
    make, stiffness = DRIVES[kind]
    expected = 0.3 - (MASSES - 2.0) * SLIDE_GRAVITY / stiffness
    varied, loaded = nominal.vary(mass=MASSES[:, None]), slider(1.0).with_payload("slide", mass=MASSES - 1.0)
    np.testing.assert_allclose(position_at_rest(varied, make()), expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(position_at_rest(varied, make(controller_model=nominal)), expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(position_at_rest(loaded, make(controller_model=nominal)), expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(position_at_rest(varied, make(controller_model="own")), 0.3, rtol=0, atol=1e-9)
    np.testing.assert_allclose(position_at_rest(varied, make(controller_model=varied)), 0.3, rtol=0, atol=1e-9)


GAINS = [(25.0, 10.0, 0.0), (25.0, 1.0, 0.0), (25.0, 100.0, 0.0), (25.0, 10.0, 40.0)]
# |1 + z + z^2 / 2 + z^3 / 6 + z^4 / 24| = 1 at z = -2.785
STEPS_OF_POLES = [("rk4", 0, 2.785 / 5.0), ("rk4", 2, 2.785 / 99.75)]


@pytest.mark.parametrize(("method", "gains", "longest"), STEPS_OF_POLES)
def test_the_longest_step_of_computed_torque_is_the_stability_limit_of_the_method(method, gains, longest):
    drive = rb.ComputedTorque("slide", 0.3, **dict(zip(("kp", "kd", "ki"), GAINS[gains], strict=True)))
    with pytest.raises(rb.ArgumentError, match="expected steps of at most") as refused:
        slider().simulate([0.0], duration=30.0, method=method, step=3.0, drives=[drive])
    assert float(str(refused.value).split("at most ")[1].split()[0]) == pytest.approx(longest, rel=5e-3)


@pytest.mark.parametrize("method", ["rk4", "implicit", "moreau"])
@pytest.mark.parametrize("gains", GAINS)
def test_steps_with_which_computed_torque_is_unstable_are_refused(method, gains):
    """A longer step is refused, and the errors decay in the longest step. A limit of the force would bound them."""
    drive = rb.ComputedTorque("slide", 0.3, **dict(zip(("kp", "kd", "ki"), gains, strict=True)), limit=1e4)
    settings = {"method": method, "drives": [drive]}
    with pytest.raises(rb.ArgumentError, match=r"errors grow in steps of 3 s of .* at most") as refused:
        slider().simulate([0.0], duration=30.0, step=3.0, **settings)
    longest = float(str(refused.value).split("at most ")[1].split()[0])
    with pytest.raises(rb.ArgumentError, match="errors grow"):
        slider().simulate([0.0], duration=30.0, step=1.02 * longest, **settings)
    motion = slider().simulate([0.0], duration=400 * longest, step=0.95 * longest, save_at=2, **settings)
    assert abs(motion.q[-1, 0] - 0.3) < 0.06


def test_gains_of_any_size_are_compared_with_the_step():
    gains = {"kp": [0.0, 1e308], "kd": [0.0, 1e308], "ki": [0.0, 1e308]}
    drive = rb.ComputedTorque("slide", 0.3, **gains)
    with pytest.raises(rb.ArgumentError, match=r"kp = 1e\+308.* errors grow"):
        slider().simulate(np.zeros((2, 1)), duration=1.0, method="rk4", step=0.1, drives=[drive])
    unstable = rb.ComputedTorque("slide", 0.3, kp=25.0, kd=1.0, ki=40.0)  # ki > kp kd
    motion = slider().simulate([0.0], duration=1.0, method="implicit", step=1e-2, drives=[unstable])
    assert motion.success


def test_a_prescribed_force_compensates_the_nominal_weight():
    nominal = slider()
    drive = rb.PrescribedForce("slide", 0.0, gravity_compensation=True)
    zero = np.zeros((3, 1))
    motion = nominal.vary(mass=MASSES[:, None]).simulate(
        zero, zero, 0.5, drives=[drive], method="rk4", step=0.1, save_at=2
    )
    np.testing.assert_allclose(motion.tau[:, -1, 0], 2.0 * SLIDE_GRAVITY, rtol=1e-15)
    expected = (2.0 / MASSES - 1.0) * SLIDE_GRAVITY * 0.5**2 / 2
    np.testing.assert_allclose(motion.q[:, -1, 0], expected, rtol=0, atol=1e-14)


def test_each_sample_may_have_its_own_controller_model():
    """All samples have the same mechanism, but different controller models."""
    make, stiffness = DRIVES["PID"]
    believed = slider().vary(mass=MASSES[:, None])
    expected = 0.3 - (2.0 - MASSES) * SLIDE_GRAVITY / stiffness
    np.testing.assert_allclose(position_at_rest(slider(), make(controller_model=believed)), expected, rtol=0, atol=1e-9)


@pytest.mark.slow
def test_a_controller_model_may_have_another_gravity():
    make, stiffness = DRIVES["PID"]
    weak = slider().replace(gravity=(0, 0, -9.0))
    expected = np.full(3, 0.3 - 2.0 * (SLIDE_GRAVITY - 9.0) / stiffness)
    np.testing.assert_allclose(position_at_rest(slider(), make(controller_model=weak)), expected, rtol=0, atol=1e-9)
    planets = slider().vary(gravity=np.array([[0, 0, -3.7], [0, 0, -10.0], [0, 0, -24.8]]))
    expected = 0.3 - 2.0 * (np.array([3.7, 10.0, 24.8]) - 10.0) / stiffness
    np.testing.assert_allclose(position_at_rest(planets, make()), expected, rtol=0, atol=1e-9)


@pytest.mark.slow_cases("False")
@pytest.mark.parametrize("knows_water", [True, False])
def test_a_controller_model_may_ignore_water(knows_water):
    """The buoyancy of a volume V is rho V g; a controller model without water compensates too much weight."""
    models = []
    for density in (1000.0, 0.0):
        builder = rb.ModelBuilder(gravity=(0, 0, -SLIDE_GRAVITY), fluid_density=density)
        body = {"inertia": rb.Inertia(2.0), "immersion": rb.Immersion(volume=5e-4)}
        builder.add_body("slide", joint=rb.Prismatic((0, 0, 1)), **body)
        models.append(builder.build())
    wet, dry = models
    make, stiffness = DRIVES["PID"]
    expected = 0.3 if knows_water else 0.3 + 1000.0 * 5e-4 * SLIDE_GRAVITY / stiffness
    found = position_at_rest(wet, make(controller_model=wet if knows_water else dry))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    varied = dry.vary(mass=np.full((3, 1), 2.0) + [[0.0], [1.0], [2.0]])
    expected = expected - (0.0 if knows_water else np.array([0.0, -1.0, -2.0]) * SLIDE_GRAVITY / stiffness)
    if not knows_water:
        np.testing.assert_allclose(position_at_rest(wet, make(controller_model=varied)), expected, rtol=0, atol=1e-9)
    with pytest.raises(rb.ArgumentError, match="its controller_model is in water, the simulated model is not"):
        position_at_rest(dry, make(controller_model=wet))


def test_the_controller_model_uses_the_precision_of_the_simulation():
    nominal, drive = slider(), DRIVES["ComputedTorque"][0]()
    varied, zero = nominal.vary(mass=MASSES[:, None]), np.zeros((3, 1))
    for model in (nominal, varied):
        double, single = (
            model.simulate(x, x, 0.5, drives=[drive], method="rk4", step=0.05, save_at=2)
            for x in (zero, zero.astype(np.float32))
        )
        assert single.tau.dtype == np.float32
        np.testing.assert_allclose(single.q, double.q, rtol=0, atol=1e-5)
        np.testing.assert_allclose(single.tau, double.tau, rtol=1e-4)


def test_nominal_returns_the_design():
    arm = rb.Model.serial_chain(2)
    assert arm.nominal is arm
    harder = arm.replace(damping=[1.0, 2.0])
    assert harder.nominal is harder
    many = harder.vary(mass=[[1.0, 1.0], [2.0, 2.0]]).vary(cg=np.zeros((2, 2, 3)))
    assert many.nominal.damping.tolist() == [1.0, 2.0]
    assert many.nominal.mass.tolist() == arm.mass.tolist()
    assert many[1].nominal.mass.tolist() == arm.mass.tolist()
    assert many.nominal.nominal is many.nominal
    # a change of the design is known to the controller, in any order of the calls
    moon, masses = (0, -1.6, 0), [[1.0, 1.0], [2.0, 2.0]]
    for model in (arm.vary(mass=masses).replace(gravity=moon), arm.replace(gravity=moon).vary(mass=masses)):
        assert model.nominal.gravity.tolist() == list(moon)
        assert model.nominal.mass.tolist() == arm.mass.tolist()
        assert model.mass.tolist() == masses


#: A mass of 3 kg and a payload of 1 kg, for one model or for the samples of a batch.
SHAPES = {
    "one value": ([3.0], 1.0),
    "batch of one": ([[3.0]], np.array([1.0])),
    "batch": ([[3.0], [3.0], [3.0]], np.ones(3)),
}


@pytest.mark.slow_cases("batch")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", DRIVES)
@pytest.mark.parametrize("known", [False, True])
def test_the_shape_of_a_value_does_not_decide_what_a_controller_knows(known, kind, shape):
    """A slide of 2 kg becomes 3 kg: the controller misses 1 kg, unless it knows it."""
    (mass, payload), (make, stiffness) = SHAPES[shape], DRIVES[kind]
    changed = slider().replace(mass=mass) if known else slider().vary(mass=mass)
    loaded = slider().with_payload("slide", mass=payload, known=known)
    # of a ComputedTorque, the stiffness is proportional to the mass that it knows
    expected = 0.3 - (0.0 if known else SLIDE_GRAVITY / stiffness)
    for model in (changed, loaded):
        zero = np.zeros((*(model.batch_shape or (1,)), 1))
        motion = model.simulate(zero, zero, 8.0, drives=[make()], method="rk4", step=0.08, save_at=2)
        np.testing.assert_allclose(motion.q[:, -1, 0], expected, rtol=0, atol=1e-9)


def test_a_known_change_has_one_value_for_all_samples():
    design = slider().vary(mass=[[1.0], [2.0]])
    loaded = design.with_payload("slide", mass=1.0, known=True)
    assert (loaded.mass.tolist(), loaded.nominal.mass.tolist()) == ([[2.0], [3.0]], [3.0])
    assert slider().replace(mass=[[3.0], [3.0]]).nominal.mass.tolist() == [3.0]
    for change in (
        lambda: slider().replace(mass=[[1.0], [2.0]]),
        lambda: slider().replace(mass=np.ones((0, 1))),
        lambda: slider().with_payload("slide", mass=[1.0, 2.0], known=True),
        lambda: slider().with_payload("slide", mass=1.0, cg=[[0, 0, 0], [0, 0, 1]], known=True),
    ):
        with pytest.raises(rb.ModelError, match=r"values that differ between the samples.*controller knows one model"):
            change()
    with pytest.raises(rb.ModelError, match="known is 1; expected True or False"):
        slider().with_payload("slide", mass=1.0, known=1)


def test_a_design_in_water_controls_no_model_without_water():
    builder = rb.ModelBuilder(gravity=(0, 0, -SLIDE_GRAVITY), fluid_density=1000.0)
    body = {"inertia": rb.Inertia(2.0), "immersion": rb.Immersion(volume=5e-4)}
    builder.add_body("slide", joint=rb.Prismatic((0, 0, 1)), **body)
    wet = builder.build()
    make, _ = DRIVES["PID"]
    with pytest.raises(rb.ArgumentError, match="its controller_model is in water, the simulated model is not"):
        position_at_rest(wet.vary(fluid_density=0.0), make())
    np.testing.assert_allclose(position_at_rest(wet.replace(fluid_density=0.0), make()), 0.3, rtol=0, atol=1e-9)


def test_of_sample_keeps_the_controller_model_of_the_sample():
    arm = rb.Model.serial_chain(3)
    many = arm.vary(mass=arm.mass * np.random.default_rng(0).uniform(0.5, 2.0, (5, 3)))
    drives = [rb.ComputedTorque(name, 0.4, kp=30.0, kd=8.0) for name in arm.joint_names]
    zero = np.zeros((5, 3))
    whole = many.simulate(zero, zero, 0.5, drives=drives, method="rk4", step=0.05, save_at=2)
    alone = many[3].simulate(zero[3], zero[3], 0.5, drives=drives, method="rk4", step=0.05, save_at=2)
    np.testing.assert_allclose(whole.q[3], alone.q, rtol=0, atol=1e-13)
    np.testing.assert_allclose(whole.tau[3], alone.tau, rtol=0, atol=1e-12)


def test_incompatible_controller_models_are_refused():
    arm, zero = rb.Model.serial_chain(2), np.zeros((3, 2))
    builder = rb.ModelBuilder()
    for name, parent in (("link1", None), ("link2", None)):
        builder.add_body(name, parent=parent, joint=rb.Revolute((0, 0, 1)), inertia=rb.Inertia.rod(1.0, mass=1.0))
    fork = builder.build()
    wrong = {
        "its model has the joints ['link1', 'link2', 'link3']": rb.Model.serial_chain(3),
        "joint 'link2' of its model has another type or parent": fork,
        "its controller_model has batch shape (4,); expected () or the batch shape of the initial": arm.vary(
            mass=np.ones((4, 2))
        ),
    }
    for words, model in wrong.items():
        with pytest.raises(rb.ArgumentError) as raised:
            arm.simulate(
                zero,
                zero,
                0.1,
                drives=[rb.ComputedTorque("link1", 0.0, kp=1.0, kd=1.0, controller_model=model)],
                save_at=2,
            )
        assert words in str(raised.value)
        assert "ComputedTorque of joint 'link1'" in str(raised.value)
    other = arm.vary(mass=[1.0, 2.0])
    two = [
        rb.ComputedTorque("link1", 0.0, kp=1.0, kd=1.0, controller_model=other),
        rb.ComputedTorque("link2", 0.0, kp=1.0, kd=1.0),
    ]
    with pytest.raises(rb.ArgumentError, match="'link2': its controller_model is not the model of the other drives"):
        arm.simulate(zero, zero, 0.1, drives=two, save_at=2)
    for drive in (
        rb.PID("link1", 0.0, kp=1.0, controller_model=other),
        rb.PrescribedForce("link1", 0.0, controller_model="own"),
    ):
        with pytest.raises(rb.ArgumentError, match="it has a model but no gravity_compensation"):
            arm.simulate(zero, zero, 0.1, drives=[drive], save_at=2)


def test_files_store_the_controller_model(tmp_path):
    builder = rb.ModelBuilder(gravity=(0, 0, -SLIDE_GRAVITY))
    builder.add_body("slide", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia(3.5))
    builder.add_drive(DRIVES["PID"][0](controller_model="own"))
    true = builder.build()
    rb.save(true, tmp_path / "true.toml")
    assert rb.load(tmp_path / "true.toml").drives[0].controller_model == "own"
    rb.save(slider(), tmp_path / "nominal.toml")
    text = (tmp_path / "true.toml").read_text()
    for name in ("nominal.toml", "other.toml"):
        (tmp_path / "other.toml").write_text(text.replace('controller_model = "own"', f'controller_model = "{name}"'))
        loaded = rb.load(tmp_path / "other.toml")
        known = 2.0 if name == "nominal.toml" else 3.5  # a file may name itself
        assert loaded.drives[0].controller_model.mass.tolist() == [known]
        expected = 0.3 - (3.5 - known) * SLIDE_GRAVITY / 50.0
        found = loaded.simulate([[0.0]], [[0.0]], 10.0, drives=loaded.drives, method="rk4", step=0.05, save_at=2).q[
            0, -1, 0
        ]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    (tmp_path / "other.toml").write_text(text.replace('controller_model = "own"', 'controller_model = "lost.toml"'))
    with pytest.raises(
        rb.FileFormatError, match=r"PID of joint 'slide': controller_model is 'lost.toml', and there is no such file"
    ):
        rb.load(tmp_path / "other.toml")
    with pytest.raises(rb.RbchainError, match="its controller_model is a Model, which a table cannot contain"):
        rb.save(loaded, tmp_path / "again.toml")
