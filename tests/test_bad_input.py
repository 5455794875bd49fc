"""Invalid input is refused with a message that names it, or gives NaN in its own sample only."""

import re

import numpy as np
import pytest

import rbchain as rb

from .conftest import mechanism
from .quantities import ARGUMENTS, arrays_of, chains_of, computed, map_state, random_state, with_argument

pytestmark = pytest.mark.plain_python
POSITIONS = ("q", "q1")
# Argument names that differ from the names of the state's arrays.
NAMES = {"integrate": {"qd": "v"}, "difference": {"q": "q0"}}


def name_of(quantity, argument):
    return NAMES.get(quantity, {}).get(argument, argument)


def refusal(model, quantity, state, error=rb.ArgumentError):
    with pytest.raises(error) as refused:
        computed(model, quantity, state)
    return str(refused.value)


# --- quaternions ------------------------------------------------------------------------------------------------------

LENGTHS = [0.0, 1e-3, 0.5, 0.999, 1 - 3e-6, 1 + 3e-6, 1.001, 2.0, 1e200]
# All lengths with one quantity, and two lengths with each; all quantities call the same check.
FEW = [(quantity, length) for quantity in ARGUMENTS for length in LENGTHS if quantity == "power" or 0.5 < length < 1]


@pytest.mark.parametrize(
    ("quantity", "length"),
    [
        pytest.param(*case, marks=[] if case in FEW else pytest.mark.slow)
        for case in ((quantity, length) for quantity in ARGUMENTS for length in LENGTHS)
    ],
)
def test_a_quaternion_without_unit_length_is_refused_with_its_body_and_index(quantity, length):
    """In a single state, a batch and a batch of two axes; body2 has a spherical joint."""
    model = mechanism("every_joint_tree")
    assert model.joint_types[2] == "spherical"
    at = model.position_index[2]
    for batch, index, chain in (((), (), None), ((4,), (3,), "3"), ((2, 3), (1, 2), "(1, 2)")):
        for argument in set(arrays_of(quantity)) & set(POSITIONS):
            state = map_state(np.copy, random_state(model, batch))
            getattr(state, argument)[(*index, slice(at, at + 4))] *= length
            words = refusal(model, quantity, state)
            name = name_of(quantity, argument)
            assert re.match(rf"{name}\b", words), words
            assert "'body2'" in words
            assert f"[{at}:{at + 4}]" in words
            assert f"of sample {chain}:" in words if batch else "sample" not in words


@pytest.mark.slow_cases("christoffel_symbols")
@pytest.mark.parametrize("quantity", ARGUMENTS)
def test_a_quaternion_of_nearly_unit_length_is_normalized(quantity):
    """The length is 1 to within a millionth, in the free and in the spherical joint."""
    model = mechanism("every_joint_tree")
    state = random_state(model, (5,))
    off = map_state(np.copy, state)
    for kind, at in zip(model.joint_types, model.position_index, strict=True):
        at += 3 * (kind == "free")  # noqa: PLW2901
        if kind in ("free", "spherical"):
            off.q[:, at : at + 4] *= np.array([1 - 9e-7, 1 - 1e-9, 1, 1 + 1e-9, 1 + 9e-7])[:, None]
            off.q1[:, at : at + 4] *= 1 - 9e-7
    for s in (slice(None), 0, 4):
        parts = zip(*(computed(model, quantity, chains_of(one, s)) for one in (state, off)), strict=True)
        for x, y in parts:
            np.testing.assert_allclose(y, x, rtol=0, atol=1e-11 * max(1.0, np.abs(x).max()))


def test_simulate_refuses_a_quaternion_without_unit_length():
    model = mechanism("ball_chain")
    q, qd = model.random_state(np.random.default_rng(0), 3)
    q[1, 4:8] = 0.0
    with pytest.raises(rb.ArgumentError, match=r"q0.*sample 1.*'body1'"):
        model.simulate(q, qd, 1.0, save_at=2)


@pytest.mark.parametrize("tolerance", ["rtol", "atol"])
@pytest.mark.parametrize("method", ["rk4", "implicit"])
def test_methods_with_fixed_steps_refuse_tolerances(method, tolerance):
    model = rb.Model.serial_chain(1)
    with pytest.raises(
        rb.ArgumentError, match=f'{tolerance} is 1e-06, but method "{method}" has steps of fixed length'
    ):
        model.simulate([0.0], [0.0], 1.0, method=method, step=0.1, save_at=2, **{tolerance: 1e-6})


# --- shapes and types -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("quantity", ARGUMENTS)
def test_arguments_of_a_wrong_length_are_refused(quantity):
    """Every argument is too short or too long by one, empty, or has the length of the other type of argument."""
    model = mechanism("every_joint_tree")
    assert model.nq == model.nv + 2
    for batch in ((), (4,)):
        state = random_state(model, batch)
        for argument in arrays_of(quantity):
            value = getattr(state, argument)
            own = value.shape[len(batch) :]
            other = {(model.nq,): model.nv, (model.nv,): model.nq}.get(own, 5)
            for length in {own[-1] - 1, own[-1] + 1, 0, other}:
                wrong = np.zeros((*value.shape[:-1], length), value.dtype)
                words = refusal(model, quantity, with_argument(state, argument, wrong))
                assert re.match(rf"{name_of(quantity, argument)}\b", words), words
                assert str(wrong.shape) in words
                assert ", ".join(["...", *map(str, own)]) in words


@pytest.mark.parametrize("quantity", ARGUMENTS)
def test_arguments_that_are_no_real_arrays_are_refused_by_name(quantity):
    model = mechanism("every_joint_tree")
    state = random_state(model, (3,))
    for argument in arrays_of(quantity):
        value = getattr(state, argument)
        for wrong in (value + 1j, value.astype(str), None, value.tolist()[:1] + [[0.0]]):
            if argument == "wrenches" and wrong is None:
                continue  # wrenches are optional
            words = refusal(model, quantity, with_argument(state, argument, wrong))
            assert re.match(rf"{name_of(quantity, argument)}\b", words), words


@pytest.mark.parametrize("quantity", [q for q in ARGUMENTS if len(arrays_of(q)) > 1])
def test_incompatible_batch_shapes_are_refused(quantity):
    model = mechanism("every_joint_tree")
    state, argument = random_state(model, (3,)), arrays_of(quantity)[-1]
    value = np.concatenate([getattr(state, argument)] * 2)[:5]
    words = refusal(model, quantity, with_argument(state, argument, value))
    assert "(3,)" in words
    assert "(5,)" in words


@pytest.mark.parametrize(
    ("prescribed", "words"),
    [
        (np.zeros(20), ["float64", "bool"]),
        (np.zeros(20, int), ["int", "bool"]),
        ([0] * 20, ["int", "bool"]),
        (None, ["bool"]),
        (np.zeros(22, bool), ["(22,)", "20"]),
        (np.zeros(3, bool), ["(3,)", "20"]),
        (True, ["()", "20"]),
        (np.zeros((7, 20), bool), ["(7,)"]),
    ],
)
def test_prescribed_must_be_one_bool_per_degree_of_freedom(prescribed, words):
    model = mechanism("every_joint_tree")
    nv = model.nv
    replaced = [word.replace("20", str(nv)).replace("22", str(model.nq)) for word in words]
    if isinstance(prescribed, np.ndarray) and prescribed.shape[-1] in (20, 22):
        prescribed = np.zeros(
            (*prescribed.shape[:-1], nv if prescribed.shape[-1] == 20 else model.nq), prescribed.dtype
        )
    if isinstance(prescribed, list):
        prescribed = [0] * nv
    message = refusal(model, "hybrid_dynamics", with_argument(random_state(model, (3,)), "prescribed", prescribed))
    assert "prescribed" in message
    assert all(word in message for word in replaced), message


def test_masked_or_ragged_bools_are_refused():
    """NumPy would drop the masks of masked rows in a list."""
    model = mechanism("every_joint_tree")
    state, row = random_state(model, (3,)), np.ma.zeros(model.nv, bool)
    for prescribed, words in (
        (row, "masked array"),
        ([row] * 3, "masked array"),
        ([[True], [True, False]], "an array of bool"),
    ):
        assert re.match(
            f"prescribed is .*{words}",
            refusal(model, "hybrid_dynamics", with_argument(state, "prescribed", prescribed)),
        )


# --- bodies and points ------------------------------------------------------------------------------------------------

WITH_BODY = ["jacobian", "relative_jacobian", "jacobian_derivative", "relative_jacobian_derivative"]


@pytest.mark.parametrize("quantity", [*WITH_BODY, "frame_poses"])
@pytest.mark.parametrize("name", ["nobody", "", "Body0"])
def test_an_unknown_body_is_refused_with_the_names_of_the_bodies(quantity, name):
    model = mechanism("every_joint_tree")
    words = refusal(model, quantity, with_argument(random_state(model, ()), "frame", name), rb.ModelError)
    assert repr(name) in words
    assert "'body7'" in words


@pytest.mark.parametrize("quantity", ["relative_jacobian", "relative_jacobian_derivative"])
def test_an_unknown_reference_frame_is_refused_by_name(quantity):
    model = mechanism("every_joint_tree")
    words = refusal(model, quantity, with_argument(random_state(model, (2,)), "relative_to", "nobody"), rb.ModelError)
    assert "'nobody'" in words


@pytest.mark.parametrize("quantity", [*WITH_BODY, "frame_poses"])
@pytest.mark.parametrize("frame", [0, 1.5, None, ()])
def test_a_frame_must_be_given_by_its_name(quantity, frame):
    model = mechanism("every_joint_tree")
    words = refusal(model, quantity, with_argument(random_state(model, ()), "frame", frame), rb.ArgumentError)
    assert repr(frame) in words


@pytest.mark.parametrize("quantity", WITH_BODY)
@pytest.mark.parametrize(
    "point",
    [0.0, (1.0, 2.0), (1.0, 2.0, 3.0, 4.0), np.zeros((2, 3)), (0, 0, np.nan), (np.inf, 0, 0), "xyz", None, (1j, 0, 0)],
)
def test_a_point_must_be_three_finite_numbers(quantity, point):
    model = mechanism("every_joint_tree")
    words = refusal(model, quantity, with_argument(random_state(model, (2,)), "point", point), rb.ModelError)
    assert re.match(r"point\b", words), words


# --- models -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "joints",
    [
        [rb.Free()],
        [rb.Revolute(), rb.Free()],
        [rb.Spherical()],
        [rb.Planar()],
        [rb.Universal()],
        [rb.Fixed()],
        [rb.Composite([rb.Revolute()])],
        [],
        ["revolute"],
        [None],
    ],
)
def test_a_composite_accepts_only_joints_of_one_degree_of_freedom(joints):
    with pytest.raises(rb.ModelError, match="Revolute, Prismatic or Screw"):
        rb.Composite(joints)


WITH_AXES = {
    "axis of a Revolute": rb.Revolute,
    "axis of a Prismatic": rb.Prismatic,
    "axis of a Screw": lambda axis: rb.Screw(axis, 0.1),
    "axis of a Planar": rb.Planar,
    "first of a Universal": rb.Universal,
    "second of a Universal": lambda axis: rb.Universal((1, 0, 0), axis),
}


@pytest.mark.parametrize("what", WITH_AXES)
def test_a_zero_axis_is_refused_when_the_joint_is_made(what):
    with pytest.raises(rb.ModelError, match=rf"^{what} joint is \[0.0, 0.0, 0.0\]; expected a non-zero vector"):
        WITH_AXES[what]((0, 0, 0))


def test_a_zero_axis_of_one_sample_is_refused_with_the_name_of_the_joint():
    builder = rb.ModelBuilder()
    builder.add_body("forearm", joint=rb.Universal(), joint_name="elbow", inertia=rb.Inertia.sphere(0.1, mass=1.0))
    axes = np.tile([[1.0, 0, 0], [0, 1, 0]], (4, 1, 1))
    axes[2, 1] = 0.0
    with pytest.raises(
        rb.ModelError, match=r"^joint 'elbow' of sample 2: axis is \[0.0, 0.0, 0.0\]; expected a non-zero"
    ):
        builder.build().vary(axis=axes)


@pytest.mark.parametrize("what", WITH_AXES)
@pytest.mark.parametrize("axis", [(1, 0), (np.nan, 0, 1), "z", (np.inf, 0, 0), None, (1, 0, 1j), np.ma.masked_all(3)])
def test_an_axis_that_is_not_a_vector_is_refused(what, axis):
    with pytest.raises(rb.ModelError, match=f"^{what} joint"):
        WITH_AXES[what](axis)


@pytest.mark.parametrize("size", [5e-324, 1e-200, 1e-9, 1.0, 1e9, 1e200])
def test_the_length_of_an_axis_does_not_matter(size):
    np.testing.assert_allclose(rb.Revolute((size, 0, 0)).axis, (1, 0, 0), rtol=0, atol=0)


@pytest.mark.parametrize("what", ["rotor_inertia", "gear_ratio"])
@pytest.mark.parametrize("joint", [rb.Free(), rb.Spherical(), rb.Universal(), rb.Revolute(), rb.Fixed()])
def test_motor_parameters_are_scalar_or_one_per_degree_of_freedom(what, joint):
    dofs = {"free": 6, "spherical": 3, "universal": 2, "revolute": 1, "fixed": 0}[joint.kind]
    for wrong in (np.ones(dofs + 1), np.ones((dofs, 1)), np.ones(7), "much", np.nan, np.inf, [None] * dofs or None):
        with pytest.raises(rb.ModelError, match=f"'body'.*{what}"):
            rb.ModelBuilder().add_body("body", joint=joint, **{what: wrong})
    rb.ModelBuilder().add_body("body", joint=joint, **{what: np.ones(dofs)})


@pytest.mark.parametrize("value", [-1e-9, [0.1, -0.1], -np.inf])
def test_a_negative_rotor_inertia_is_refused(value):
    with pytest.raises(rb.ModelError, match=r"'body'.*rotor_inertia"):
        rb.ModelBuilder().add_body("body", joint=rb.Universal(), rotor_inertia=value)


def test_a_gear_ratio_of_zero_would_drop_the_rotor_and_is_refused():
    builder, joint, inertia = rb.ModelBuilder(), rb.Universal(), rb.Inertia(1.0, inertia=(1, 1, 1))
    with pytest.raises(
        rb.ModelError, match=r"'body': gear_ratio is \[1.0, 0.0\].*other than 0.*set rotor_inertia to 0"
    ):
        builder.add_body("body", joint=joint, inertia=inertia, rotor_inertia=0.1, gear_ratio=[1.0, 0.0])
    builder.add_body("body", joint=joint, inertia=inertia, rotor_inertia=[0.1, 0.0], gear_ratio=[1.0, 0.0])
    model = builder.build()
    for fields in ({"rotor_inertia": [0.1, 0.2]}, {"gear_ratio": [[1.0, 1.0], [0.0, 1.0]]}):
        with pytest.raises(rb.ModelError, match="gear_ratio of body 'body' is 0, but its rotor_inertia is above 0"):
            model.vary(**fields)


def test_the_base_of_a_robot_must_be_a_joint(tmp_path):
    path = tmp_path / "robot.urdf"
    path.write_text('<robot name="r"><link name="base"/></robot>')
    with pytest.raises(rb.ModelError, match="Revolute"):
        rb.load(path, base="free")


def test_the_axes_of_a_free_or_spherical_joint_cannot_vary():
    model = mechanism("every_joint_tree")
    same = np.tile(model.axis, (4, 1, 1))
    assert model.vary(axis=same).batch_shape == (4,)
    for kind in ("free", "spherical"):
        first = model.velocity_index[model.joint_types.index(kind)]
        changed = same.copy()
        changed[2, first] = (0, 1, 0)
        with pytest.raises(rb.ModelError, match=r"axis.*(free|spherical)"):
            model.vary(axis=changed)


@pytest.mark.parametrize(
    ("field", "bad", "word"),
    [
        ("rotor_inertia", -1.0, "zero or more"),
        ("rotor_inertia", np.nan, "finite"),
        ("gear_ratio", np.inf, "finite"),
        ("pitch", np.nan, "finite"),
    ],
)
def test_an_invalid_number_of_one_sample_is_refused_with_its_body_and_index(field, bad, word):
    """The message names the degree of freedom within its body: here the second of body4."""
    model = mechanism("every_joint_tree")
    assert model.joint_types[4] == "universal"
    values = np.tile(getattr(model, field), (5, 1))
    values[3, model.velocity_index[4] + 1] = bad
    with pytest.raises(rb.ModelError, match=f"'body4' of sample 3.*{field}.*{word}"):
        model.vary(**{field: values})


@pytest.mark.parametrize("field", ["rotor_inertia", "gear_ratio", "pitch", "axis"])
def test_fields_per_degree_of_freedom_cannot_be_given_per_body(field):
    model = mechanism("every_joint_tree")
    wrong = getattr(model, field)[: model.n_bodies]
    with pytest.raises(rb.ModelError, match=rf"{field} has shape.*{model.nv}"):
        model.vary(**{field: wrong})


# --- states that are not finite ---------------------------------------------------------------------------------------


def test_overflowing_sums_of_fixed_bodies_are_refused_with_the_name_of_the_body():
    builder = rb.ModelBuilder()
    builder.add_body("arm", joint=rb.Revolute(), inertia=rb.Inertia(2.0, cg=(1e308, 0, 0), inertia=(1, 1, 1)))
    builder.add_body("tool", parent="arm", joint=rb.Fixed(), inertia=rb.Inertia(1.0))
    with pytest.raises(rb.ModelError, match=r"body 'arm': cg is \[inf, 0.0, 0.0\]; expected finite numbers"):
        builder.build()
