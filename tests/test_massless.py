"""Bodies without inertia are named when they are built, and refused where their accelerations are undetermined."""

import itertools

import numpy as np
import pytest

import rbchain as rb

from .mechanisms import random_inertia, random_parents, random_rotation

ROD = rb.Inertia.rod(1.0, mass=2.0, axis=(1, 0, 0), cg=(0.5, 0, 0))
BALL = rb.Inertia.sphere(0.1, mass=1.0, cg=(0.3, 0, 0))
NEEDS_INERTIA = {
    "forward_dynamics": lambda m, q, v: m.forward_dynamics(q, v, v),
    "hybrid_dynamics": lambda m, q, v: m.hybrid_dynamics(q, v, v, v, np.zeros(m.nv, bool)),
    "mass_matrix_inverse": lambda m, q, v: m.mass_matrix_inverse(q),
    "solve_mass_matrix": lambda m, q, v: m.solve_mass_matrix(q, v),
    "forward_dynamics_derivatives": lambda m, q, v: m.forward_dynamics_derivatives(q, v, v),
    "force_balance_residual": lambda m, q, v: m.force_balance_residual(q, v, v),
    "simulate": lambda m, q, v: m.simulate(q[None], v[None], 0.1, save_at=2),
    "forward_dynamics of generated source": lambda m, q, v: m.generate(["forward_dynamics"]),
}
NEEDS_NONE = {
    "inverse_dynamics": lambda m, q, v: m.inverse_dynamics(q, v, v),
    "mass_matrix": lambda m, q, v: m.mass_matrix(q),
    "body_poses": lambda m, q, v: m.body_poses(q).translation,
    "jacobian": lambda m, q, v: m.jacobian(q, m.body_names[-1]),
    "momentum": lambda m, q, v: m.momentum(q, v),
    "energy": lambda m, q, v: m.energy(q, v)[0],
    "inverse_dynamics_derivatives": lambda m, q, v: m.inverse_dynamics_derivatives(q, v, v)[0],
}


def built(*bodies, **settings):
    """A model of bodies, each given as (name, parent, joint, inertia) and more arguments of `add_body`."""
    builder = rb.ModelBuilder(**settings)
    for name, parent, joint, inertia, *more in bodies:
        place = rb.Pose((0.2, 0.1, 0.3), (0.3, 0.1, -0.2, 0.9))
        builder.add_body(
            name, parent=parent, joint=joint, inertia=inertia, placement=place, **(more[0] if more else {})
        )
    return builder.build()


def finger():
    """An arm with a finger of two links without mass."""
    with pytest.warns(UserWarning, match=r"motion of \['finger', 'tip'\]"):
        return built(
            ("arm", None, rb.Revolute(), BALL),
            ("finger", "arm", rb.Revolute((0, 1, 0)), None),
            ("tip", "finger", rb.Prismatic((1, 0, 0)), None),
        )


@pytest.mark.parametrize("name", NEEDS_INERTIA)
def test_quantities_that_need_inertia_are_refused_with_bodies_and_remedies(name):
    model = finger()
    with pytest.raises(rb.ModelError) as refused:
        NEEDS_INERTIA[name](model, np.zeros(3), np.ones(3))
    words = str(refused.value)
    assert "['finger', 'tip']" in words
    assert "'arm'" not in words
    for remedy in ("mass", "inertia", "rotor_inertia", "armature", "fixed"):
        assert remedy in words
    assert words.startswith(name.split()[0])


@pytest.mark.parametrize("name", NEEDS_NONE)
def test_kinematics_and_inverse_dynamics_need_no_inertia(name):
    assert np.isfinite(NEEDS_NONE[name](finger(), np.zeros(3), np.ones(3))).all()


WATER = {"fluid_density": 1000.0}
ADDED = {"immersion": rb.Immersion(added_mass=(1, 1, 1, 0.1, 0.1, 0.1))}
WEIGHTLESS_BUOY = {"immersion": rb.Immersion(volume=1.0)}
POINT, TWICE = rb.Inertia(1.0, cg=(0, 0, 0.5)), rb.Composite([rb.Revolute(), rb.Revolute()])
#: Mechanisms singular in all positions: bodies, settings of the builder, and bodies with undetermined accelerations.
SINGULAR = {
    "a leaf without inertia": ([("a", None, rb.Revolute(), BALL), ("b", "a", rb.Revolute(), None)], {}, ("b",)),
    "no inertia anywhere": ([("a", None, rb.Prismatic(), None)], {}, ("a",)),
    "a slide without mass that has a tensor": (
        [("a", None, rb.Prismatic(), rb.Inertia(0.0, inertia=(1, 1, 1)))], {}, ("a",)
    ),
    "a point mass on the axis": ([("a", None, rb.Revolute(), POINT)], {}, ("a",)),
    "a point mass on the axis of another": (
        [("a", None, rb.Revolute((1, 0, 0)), BALL), ("b", "a", rb.Revolute(), POINT)], {}, ("b",)
    ),
    "a rod that turns about itself": ([("a", None, rb.Revolute((1, 0, 0)), ROD)], {}, ("a",)),
    "a ball joint of a point mass": ([("a", None, rb.Spherical(), rb.Inertia(1.0, cg=(0.1, 0.2, 0.3)))], {}, ("a",)),
    "a ball joint of a rod": ([("a", None, rb.Spherical(), ROD)], {}, ("a",)),
    "a free rod": ([("a", None, rb.Free(), ROD)], {}, ("a",)),
    "a free point mass": ([("a", None, rb.Free(), rb.Inertia(1.0))], {}, ("a",)),
    "two hinges in one line": ([("a", None, TWICE, BALL)], {}, ("a",)),
    "a slide and a screw in one line without mass between": (
        [("a", None, rb.Composite([rb.Prismatic(), rb.Screw((0, 0, 1), 0.1)]), rb.Inertia(1.0))], {}, ("a",)
    ),
    "four hinges and a point mass": (
        [("a", None, rb.Revolute(), None), ("b", "a", rb.Revolute((0, 1, 0)), None),
         ("c", "b", rb.Revolute((1, 0, 0)), None),
         ("d", "c", rb.Revolute((1, 1, 0)), rb.Inertia(1.0, cg=(0.3, 0.2, 0.1)))],
        {}, ("a",),
    ),
    "a buoy that displaces water and weighs nothing": ([("a", None, rb.Free(), None, WEIGHTLESS_BUOY)], WATER, ("a",)),
    "added mass without water": ([("a", None, rb.Revolute(), None, ADDED)], {}, ("a",)),
    "a rotor at one of two hinges": (
        [("a", None, rb.Universal(), None, {"rotor_inertia": (1.0, 0.0)})], {}, ("a",)
    ),
}  # fmt: skip
#: Similar mechanisms that are regular.
SOUND = {
    "a massless middle": ([("a", None, rb.Revolute((1, 0, 0)), None), ("b", "a", rb.Revolute(), BALL)], {}),
    "a massless middle and a rod": ([("a", None, rb.Revolute((0, 1, 0)), None), ("b", "a", rb.Revolute(), ROD)], {}),
    "a point mass off the axis": ([("a", None, rb.Revolute(), rb.Inertia(1.0, cg=(1e-3, 0, 1)))], {}),
    "a rod that turns across": ([("a", None, rb.Revolute(), ROD)], {}),
    "a rotor": ([("a", None, rb.Revolute(), None, {"rotor_inertia": 1e-6})], {}),
    "rotors at both hinges": ([("a", None, rb.Universal(), None, {"rotor_inertia": 1e-6})], {}),
    "rotors at all of a ball joint": ([("a", None, rb.Spherical(), ROD, {"rotor_inertia": 1e-6})], {}),
    "a rotor at the leaf": (
        [("a", None, rb.Revolute(), BALL), ("b", "a", rb.Revolute(), None, {"rotor_inertia": 1.0})], {}
    ),
    "added mass in water": ([("a", None, rb.Free(), None, ADDED)], WATER),
    "a fixed leaf": ([("a", None, rb.Revolute(), BALL), ("b", "a", rb.Fixed(), None)], {}),
    "three hinges and a point mass": (
        [("a", None, rb.Revolute(), None), ("b", "a", rb.Revolute((0, 1, 0)), None),
         ("c", "b", rb.Revolute((1, 1, 0)), rb.Inertia(1.0, cg=(0.3, 0.2, 0.1)))], {},
    ),
    "a tiny body": ([("a", None, rb.Free(), rb.Inertia.sphere(1e-6, mass=1e-12))], {}),
    "a body of small moments that are far from zero to each other": (
        [("a", None, rb.Spherical(), rb.Inertia(1.0, inertia=(1e-9, 1, 1)))], {}
    ),
}  # fmt: skip


def smallest_share(H):
    """The smallest eigenvalue of a mass matrix of bodies of about 1 kg and 1 m, relative to the largest, or to 1."""
    moments = np.linalg.eigvalsh(H)
    return moments[0] / max(moments[-1], 1.0)


def scaled(H):
    """A mass matrix scaled to a unit diagonal."""
    return H / np.sqrt(np.outer(np.diag(H), np.diag(H)))


@pytest.mark.plain_python  # the builder detects it in Python; water needs drivers that no other test compiles
@pytest.mark.parametrize("case", SINGULAR)
def test_a_mechanism_that_is_singular_in_all_positions_is_detected_when_built(case):
    """The mass matrix is singular in other positions than those that the builder checks."""
    bodies, settings, names = SINGULAR[case]
    with pytest.warns(UserWarning, match=r"no mass, inertia or rotor resists the motion of .*Give these bodies a mass"):
        model = built(*bodies, **settings)
    assert model.bodies_without_inertia == names
    for q in model.random_state(5, 20)[0]:
        assert smallest_share(model.mass_matrix(q)) < 1e-14
    with pytest.raises(rb.ModelError, match="forward_dynamics"):
        model.forward_dynamics(model.neutral(), np.zeros(model.nv), np.zeros(model.nv))


@pytest.mark.plain_python
@pytest.mark.parametrize("case", SOUND)
def test_a_regular_mechanism_is_not_refused(case):
    bodies, settings = SOUND[case]
    model = built(*bodies, **settings)
    assert model.bodies_without_inertia == ()
    q, _ = model.random_state(5)
    assert smallest_share(scaled(model.mass_matrix(q))) > 1e-10
    assert np.isfinite(model.forward_dynamics(q, np.zeros(model.nv), np.ones(model.nv))).all()


def random_inertia_of_any_rank(rng):
    """A body, a rod, a point mass or nothing."""
    kind = rng.integers(4)
    if kind == 0:
        return random_inertia(rng)
    if kind == 1:
        return rb.Inertia.rod(rng.uniform(0.5, 1), mass=1.0, axis=rng.normal(size=3), cg=rng.normal(size=3))
    return rb.Inertia(1.0, cg=rng.normal(size=3)) if kind == 2 else None


@pytest.mark.slow_cases("1", "2", "3")
@pytest.mark.filterwarnings("ignore:.*no mass, inertia or rotor")
@pytest.mark.parametrize("chunk", range(4))
def test_a_random_tree_is_refused_if_and_only_if_its_mass_matrix_is_singular(chunk):
    found = []
    for seed in range(100 * chunk, 100 * (chunk + 1)):
        rng = np.random.default_rng(seed)
        builder, n = rb.ModelBuilder(), int(rng.integers(1, 7))
        for i, parent in enumerate(random_parents(seed, n)):
            joint = rng.choice(
                [rb.Revolute, rb.Prismatic, rb.Spherical, rb.Free, rb.Universal], p=[0.5, 0.2, 0.1, 0.1, 0.1]
            )
            joint = joint(rng.normal(size=3)) if joint in (rb.Revolute, rb.Prismatic) else joint()
            builder.add_body(
                f"b{i}",
                parent=None if parent < 0 else f"b{parent}",
                joint=joint,
                placement=rb.Pose(rng.normal(size=3), random_rotation(rng)),
                inertia=random_inertia_of_any_rank(rng),
                rotor_inertia=rng.integers(2) * (rng.uniform() < 0.2),
            )
        model = builder.build()
        # in the best of several positions, because a regular mechanism may be close to a singular configuration
        share = max(smallest_share(model.mass_matrix(q)) for q in model.random_state(seed, 10)[0])
        assert (share < 1e-14) == bool(model.bodies_without_inertia), (seed, share)
        found.append(bool(model.bodies_without_inertia))
    assert 20 < sum(found) < 80


# --- models of samples ------------------------------------------------------------------------------------------------


def arm_with_tool():
    return built(("arm", None, rb.Revolute(), BALL), ("tool", "arm", rb.Revolute((0, 1, 0)), BALL))


def test_a_mass_can_vary_to_zero_and_from_zero():
    arm = arm_with_tool()
    empty = arm.vary(mass=[1.0, 0.0], inertia=np.array([arm.inertia[0], np.zeros((3, 3))]))
    assert (arm.bodies_without_inertia, empty.bodies_without_inertia) == ((), ("tool",))
    with pytest.raises(rb.ModelError, match=r"motion of \['tool'\]"):
        empty.forward_dynamics([0, 0], [0, 0], [0, 0])
    again = empty.vary(mass=arm.mass)
    assert again.bodies_without_inertia == ()
    assert np.isfinite(again.forward_dynamics([0, 0], [0, 0], [0, 0])).all()
    for sound in (empty.vary(rotor_inertia=[0.0, 1.0]), empty.with_payload("tool", mass=1.0, cg=(0.1, 0, 0))):
        assert sound.bodies_without_inertia == ()
        assert np.isfinite(sound.forward_dynamics([0, 0], [0, 0], [0, 0])).all()


def test_samples_without_inertia_are_nan_with_a_status_and_do_not_change_others():
    arm = arm_with_tool().vary(inertia=np.array([BALL.inertia, np.zeros((3, 3))]))
    masses = np.ones((20, 2))
    whole = arm.vary(mass=masses)
    masses[[3, 17], 1] = 0.0
    some = arm.vary(mass=masses)
    assert some.bodies_without_inertia == ()
    q, qd = np.zeros((20, 2)), np.ones((20, 2))
    good, found = whole.forward_dynamics(q, qd, qd), some.forward_dynamics(q, qd, qd)
    assert np.isnan(found[[3, 17]]).all()
    np.testing.assert_array_equal(np.delete(found, [3, 17], 0), np.delete(good, [3, 17], 0))
    motion = some.simulate(q, qd, 0.1, on_failure="ignore", save_at=2)
    assert motion.status.nonzero()[0].tolist() == [3, 17]
    assert (motion.status[[3, 17]] == 2).all()
    assert some[3].bodies_without_inertia == ("tool",)


POINT_MASS = rb.Inertia(1.0, cg=(0.3, 0.2, 0.1))
SAMPLES, WITHOUT = 40, list(range(1, 40, 3))


def hinges(without):
    """Four links on hinges. In the samples `without`, only a point mass on the last link has inertia."""
    rng = np.random.default_rng(5)
    bodies = [
        (
            f"link{i}",
            f"link{i - 1}" if i else None,
            rb.Revolute(rng.normal(size=3)),
            random_inertia(rng) if i < 3 else POINT_MASS,
        )
        for i in range(4)
    ]
    chain = built(*bodies)
    mass, inertia = (np.repeat(x[None], SAMPLES, 0) for x in (chain.mass, chain.inertia))
    mass[without, :-1], inertia[without, :-1] = 0.0, 0.0
    return chain.vary(mass=mass, inertia=inertia)


@pytest.mark.plain_python
@pytest.mark.parametrize(
    "name", [name for name in NEEDS_INERTIA if name not in ("simulate", "forward_dynamics of generated source")]
)
def test_round_off_is_not_mistaken_for_inertia(name):
    """Many hinges without inertia leave round-off of unknown size in the kernels."""
    models, q, qd = [hinges(without) for without in ([], WITHOUT)], *hinges([]).random_state(0, SAMPLES)
    sound, found = (np.stack(NEEDS_INERTIA[name](model, q, qd)) for model in models)
    axis = found.shape.index(SAMPLES)
    sound, found = (np.moveaxis(x, axis, 0) for x in (sound, found))
    assert np.isnan(found[WITHOUT]).all()
    np.testing.assert_array_equal(np.delete(found, WITHOUT, 0), np.delete(sound, WITHOUT, 0))


@pytest.mark.parametrize(("method", "step"), [("rk45", None), ("rk4", 1e-3), ("implicit", 1e-3)])
def test_a_sample_without_inertia_ends_at_the_start(method, step):
    sound, some = hinges([]), hinges(WITHOUT)
    q, qd = sound.random_state(0, SAMPLES)
    whole, found = (
        model.simulate(q, qd, 2e-3, method=method, step=step, on_failure="ignore", save_at=2) for model in (sound, some)
    )
    assert found.status.nonzero()[0].tolist() == WITHOUT
    assert (found.end_time[WITHOUT] == 0.0).all()
    np.testing.assert_array_equal(found.end_q[WITHOUT], q[WITHOUT])
    np.testing.assert_array_equal(np.delete(found.q, WITHOUT, 0), np.delete(whole.q, WITHOUT, 0))


@pytest.mark.plain_python
def test_prescribed_accelerations_need_no_inertia():
    some, first, last = hinges(WITHOUT), WITHOUT[0], WITHOUT[-1]
    q, qd = some.random_state(0, SAMPLES)
    held = np.ones((SAMPLES, 4), bool)
    held[:, 3], held[last, :] = False, False
    qdd, tau = some.hybrid_dynamics(q, qd, qd, qd, held)
    failing = np.isnan(np.concatenate([qdd, tau], -1))
    assert failing.any(-1).nonzero()[0].tolist() == [last]
    assert failing[last].all()
    several, _ = some.hybrid_dynamics(*(np.stack([x, x]) for x in (q, qd, qd, qd)), held[first])
    np.testing.assert_array_equal(several[1, :last], qdd[:last])
    assert np.isfinite(several[:, last]).all()


def test_damping_of_other_samples_does_not_move_a_sample_without_damping():
    """An implicit step moves links without inertia only if a passive force resists them."""
    links = [
        (f"link{i}", f"link{i - 1}" if i else None, rb.Revolute((i % 2, 0, 1 - i % 2)), BALL if i == 0 else None)
        for i in range(6)
    ]
    with pytest.warns(UserWarning, match="no mass, inertia or rotor"):
        chain = built(*links)
    damping = np.full((8, 6), 0.5)
    damping[[2, 5]] = 0.0
    motion = chain.vary(damping=damping).simulate(
        np.ones((8, 6)), np.ones((8, 6)), 1e-2, method="implicit", step=1e-3, on_failure="ignore", save_at=2
    )
    assert motion.status.nonzero()[0].tolist() == [2, 5]


def test_a_model_all_of_whose_samples_lack_inertia_is_refused():
    arm = arm_with_tool().vary(inertia=np.zeros((2, 3, 3)), cg=np.zeros((2, 3)), placement_translation=np.zeros((2, 3)))
    many = arm.vary(mass=np.random.default_rng(0).uniform(1, 2, (3, 1000, 2)))
    assert many.bodies_without_inertia == ("arm", "tool")
    with pytest.raises(rb.ModelError, match=r"motion of \['arm', 'tool'\]"):
        many.simulate(np.zeros((3, 1000, 2)), np.zeros((3, 1000, 2)), 0.1, save_at=2)
    gravity = finger().vary(gravity=np.zeros((5, 3)))
    with pytest.raises(rb.ModelError, match=r"motion of \['finger', 'tip'\]"):
        gravity.forward_dynamics(np.zeros((5, 3)), np.zeros((5, 3)), np.zeros((5, 3)))


def test_one_regular_sample_is_enough_to_compute():
    point = arm_with_tool().vary(inertia=np.zeros((2, 3, 3)))
    for sound in (0, 1, 1024, 1025, 2999):
        cg = np.zeros((3000, 2, 3))
        cg[sound] = 0.1
        assert point.vary(cg=cg).bodies_without_inertia == ()


def test_an_empty_batch_is_not_refused_as_singular():
    assert finger().vary(mass=np.ones((0, 3))).forward_dynamics(*np.zeros((3, 0, 3))).shape == (0, 3)


# --- motions that need no inertia -------------------------------------------------------------------------------------


@pytest.mark.plain_python
def test_hybrid_dynamics_needs_inertia_only_where_forces_are_given():
    model = finger()
    for held in itertools.product([False, True], repeat=3):
        mask = np.array(held)
        if held[1] and held[2]:
            qdd, tau = model.hybrid_dynamics(np.ones(3), np.ones(3), np.ones(3), np.ones(3), mask)
            assert np.isfinite([qdd, tau]).all()
            np.testing.assert_allclose(model.inverse_dynamics(np.ones(3), np.ones(3), qdd), tau, atol=1e-12)
        else:
            with pytest.raises(rb.ModelError, match=r"hybrid_dynamics: .*('finger'|'tip')"):
                model.hybrid_dynamics(np.ones(3), np.ones(3), np.ones(3), np.ones(3), mask)


def test_a_prescribed_motion_needs_no_inertia():
    model = finger()
    drives = [rb.PrescribedPosition("finger", 0.2), rb.PrescribedVelocity("tip", 0.1)]
    motion = model.simulate(np.zeros((2, 3)), np.zeros((2, 3)), 0.1, drives=drives, save_at=2)
    assert motion.success
    assert np.isfinite(motion.q).all()
    with pytest.raises(rb.ModelError, match=r"simulate: .*motion of \['tip'\]"):
        model.simulate(np.zeros((2, 3)), np.zeros((2, 3)), 0.1, drives=drives[:1], save_at=2)


def test_an_implicit_step_needs_no_inertia_where_there_is_damping():
    """A massless pointer with a damper moves at tau / damping in the limit of short steps."""
    with pytest.warns(UserWarning, match="no mass, inertia or rotor"):
        model = built(("pointer", None, rb.Revolute(), None, {"passive": rb.PassiveForces(damping=2.0)}))
    motion = model.simulate([[0.0]], [[0.0]], 1.0, method="implicit", step=1e-3, tau=1.0, save_at=2)
    np.testing.assert_allclose(motion.qd[0, -1], [0.5], rtol=1e-12)
    with pytest.raises(rb.ModelError, match=r"simulate: .*'pointer'"):
        model.simulate([[0.0]], [[0.0]], 1.0, method="rk4", step=1e-3, tau=1.0, save_at=2)


# --- inertias from files ----------------------------------------------------------------------------------------------

LINK = """<robot name="r"><link name="base"/><link name="arm"><inertial>
  <origin xyz="0.1 0 0"/><mass value="1"/><inertia ixx="{}" ixy="0" ixz="0" iyy="1" iyz="0" izz="{}"/>
</inertial></link><joint name="j" type="continuous"><parent link="base"/><child link="arm"/>
<axis xyz="0 0 1"/></joint></robot>"""


@pytest.mark.parametrize(
    ("moments", "message"),
    [
        ((-0.5, 1.0), r"r.urdf: model 'r': the inertia of \['arm'\] has a negative principal moment"),
        ((0.5, 3.0), r"r.urdf: model 'r': no body can have the inertia of \['arm'\].*triangle inequality"),
    ],
)
def test_a_file_with_an_unphysical_inertia_gives_a_warning_with_the_reason(tmp_path, moments, message):
    path = tmp_path / "r.urdf"
    path.write_text(LINK.format(*moments))
    with pytest.warns(UserWarning, match=message) as caught:
        rb.load(path)
    assert len(caught) == 1
    with pytest.raises(rb.ModelError, match="body 'arm': inertia has the principal moments"):
        rb.load(path, nonphysical_inertia="refuse")
    with pytest.raises(rb.ModelError, match="body 'arm': inertia has the principal moments"):
        rb.ModelBuilder().add_body(
            "arm", joint=rb.Revolute(), inertia=rb.Inertia(1.0, inertia=(*moments[:1], 1, moments[1]))
        )


def test_a_file_with_zero_moments_that_have_round_off_is_accepted(tmp_path):
    """The iCub has such moments."""
    path = tmp_path / "r.urdf"
    path.write_text(LINK.format(-5e-20, -5e-20).replace('iyy="1"', 'iyy="0"'))
    assert np.isfinite(rb.load(path).forward_dynamics([0.0], [0.0], [0.0])).all()
    rb.load(path, nonphysical_inertia="refuse")


@pytest.mark.parametrize("length", [1.0, 2.0**-23])
def test_the_detection_of_missing_inertia_does_not_depend_on_scale(length):
    """The check must scale with the mechanism; for one of 100 nm, displacements by meters would hide its inertias."""
    rng, builder = np.random.default_rng(0), rb.ModelBuilder()
    for i, joint in enumerate((rb.Revolute(), rb.Revolute((0, 1, 0)), rb.Revolute((1, 0, 0)), rb.Free())):
        own = random_inertia(rng)
        builder.add_body(
            f"body{i}",
            parent="body0" if i else None,
            joint=joint,
            placement=rb.Pose(length * rng.normal(size=3), random_rotation(rng)),
            inertia=rb.Inertia(own.mass, cg=length * own.cg, inertia=length**2 * own.inertia) if i else None,
        )
    assert builder.build().bodies_without_inertia == ()
