"""Every quantity for every shape of batch, both precisions, and varied models."""

import inspect
import math

import numpy as np
import pandas
import pytest

import rbchain as rb

from .conftest import mechanism
from .mechanisms import random_inertia, random_rotation
from .quantities import (
    ARGUMENTS,
    ROUNDINGS,
    Magnitudes,
    assert_within,
    chains_of,
    computed,
    map_state,
    random_state,
    shapes,
    single,
    usual_rounding,
)

pytestmark = pytest.mark.plain_python


@pytest.mark.parametrize("quantity", ARGUMENTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("batch", [(), (2, 3), (3, 0)])
def test_a_quantity_has_the_shape_of_the_batch_and_the_precision_of_the_state(quantity, dtype, batch):
    model = mechanism("small_floating_tree")
    state = random_state(model, batch)
    found = computed(model, quantity, state if dtype is np.float64 else single(state))
    assert [x.shape for x in found] == [batch + shape for shape in shapes(model, quantity)]
    assert [x.dtype for x in found] == [dtype] * len(found)
    assert all(np.isfinite(x).all() for x in found)


@pytest.mark.parametrize("quantity", ARGUMENTS)
def test_one_argument_in_float64_makes_the_result_float64(quantity):
    model = mechanism("small_floating_tree")
    state = single(random_state(model, (3,)))
    for argument in ARGUMENTS[quantity].split():
        if getattr(getattr(state, argument), "dtype", None) == np.float32:
            mixed = map_state(lambda x: x, state)
            setattr(mixed, argument, getattr(state, argument).astype(float))
            assert all(x.dtype == np.float64 for x in computed(model, quantity, mixed))


@pytest.mark.parametrize("quantity", ARGUMENTS)
def test_shared_arguments_broadcast_over_the_samples(quantity):
    """All arguments but the last have no batch axes, then all but the first."""
    model = mechanism("small_floating_tree")
    state = random_state(model, (6,))
    arrays = [name for name in ARGUMENTS[quantity].split() if isinstance(getattr(state, name), np.ndarray)]
    for own in {arrays[0], arrays[-1]}:
        spread, shared = map_state(lambda x: x, state), map_state(lambda x: x, state)
        for name in set(arrays) - {own}:
            value = getattr(state, name)[2]
            setattr(shared, name, value)
            setattr(spread, name, np.tile(value, (6,) + (1,) * value.ndim))
        for x, same in zip(computed(model, quantity, spread), computed(model, quantity, shared), strict=True):
            assert np.array_equal(x, same)


def varied(model, chains, seed=0):
    """Return new values of all fields, different in every sample. Axes of free and spherical joints cannot vary."""
    rng = np.random.default_rng(seed)
    n, dofs = model.n_bodies, model.nv
    bodies = [[random_inertia(rng) for _ in range(n)] for _ in range(chains)]
    axis = rng.normal(size=(chains, dofs, 3))
    axis /= np.linalg.norm(axis, axis=-1, keepdims=True)
    for kind, first, end in zip(
        model.joint_types, model.velocity_index, [*model.velocity_index[1:], dofs], strict=True
    ):
        if kind in ("free", "spherical"):
            axis[:, first:end] = model.axis[first:end]
    return {
        "mass": np.array([[b.mass for b in chain] for chain in bodies]),
        "cg": np.array([[b.cg for b in chain] for chain in bodies]),
        "inertia": np.array([[b.inertia for b in chain] for chain in bodies]),
        "placement_rotation": np.array([[random_rotation(rng) for _ in range(n)] for _ in range(chains)]),
        "placement_translation": rng.normal(size=(chains, n, 3)),
        "axis": axis,
        "pitch": rng.normal(size=(chains, dofs)),
        "rotor_inertia": rng.uniform(1e-5, 1e-4, (chains, dofs)),
        "gear_ratio": rng.uniform(-100, 100, (chains, dofs)),
        "gravity": rng.normal(size=(chains, 3)),
    }


def built(model, values):
    """Build a model of the same structure with these values of its fields."""
    one_dof = {"revolute": rb.Revolute, "prismatic": rb.Prismatic}
    builder = rb.ModelBuilder(gravity=values["gravity"])
    ends = [*model.velocity_index[1:], model.nv]
    for i, (kind, first, end) in enumerate(zip(model.joint_types, model.velocity_index, ends, strict=True)):
        joints = [
            rb.Screw(values["axis"][k], values["pitch"][k]) if of == "screw" else one_dof[of](values["axis"][k])
            for k, of in enumerate(model.dof_types[first:end], first)
        ]
        joint = {"free": rb.Free(), "spherical": rb.Spherical()}.get(kind, rb.Composite(joints) if joints else None)
        p = model.parent[i]
        builder.add_body(
            model.body_names[i],
            parent=None if p < 0 else model.body_names[p],
            joint=joint,
            placement=rb.Pose(values["placement_translation"][i], values["placement_rotation"][i]),
            inertia=rb.Inertia(values["mass"][i], cg=values["cg"][i], inertia=values["inertia"][i]),
            rotor_inertia=values["rotor_inertia"][first:end],
            gear_ratio=values["gear_ratio"][first:end],
        )
    return builder.build()


@pytest.fixture(scope="module")
def varied_and_built():
    """Return a model whose samples differ in all fields, and a model of each sample from the builder."""
    model = mechanism("small_floating_tree")
    values = varied(model, 4)
    return model.vary(**values), [built(model, {name: v[c] for name, v in values.items()}) for c in range(4)]


@pytest.mark.parametrize("quantity", ARGUMENTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_each_sample_of_a_varied_model_equals_a_model_built_with_its_parameters(varied_and_built, quantity, dtype):
    """With one state per sample and with several."""
    many, models = varied_and_built
    fine = random_state(many, (4, 2))
    state = fine if dtype is np.float64 else single(fine)
    several = computed(many[..., None], quantity, state)
    first = computed(many, quantity, chains_of(state, (slice(None), 0)))
    for c, one in enumerate(models):
        expected = computed(one, quantity, chains_of(state, c))
        coarser = np.finfo(dtype).eps / np.finfo(float).eps
        for x, y, z, allowed in zip(
            several, first, expected, usual_rounding(one, quantity, chains_of(fine, c)), strict=True
        ):
            assert x.dtype == y.dtype == z.dtype == dtype
            assert_within(x[c], z, coarser * allowed)
            assert_within(y[c], z[0], coarser * allowed[0])


@pytest.mark.parametrize("quantity", ARGUMENTS)
@pytest.mark.parametrize(
    ("of_model", "of_states"),
    [
        ((3,), (2, 3)),
        ((3,), (3, 3)),
        ((3,), (2, 1)),
        ((3, 1), (3, 2)),
        ((3, 1), (2,)),
        ((2, 1, 3), (4, 1)),
        ((1,), (4,)),
        ((3,), (0, 3)),
        ((0,), (2, 0)),
        ((0,), (2, 1)),
    ],
)
def test_the_batch_of_a_varied_model_broadcasts_like_one_more_argument(quantity, of_model, of_states):
    model, samples, places = mechanism("small_floating_tree"), math.prod(of_model), math.prod(of_states)
    values = {name: value[:samples] for name, value in varied(model, max(1, samples)).items()}
    flat, state = model.vary(**values), random_state(model, of_states)
    many = model.vary(**{name: value.reshape(*of_model, *value.shape[1:]) for name, value in values.items()})
    found = computed(many, quantity, state)
    has_samples = quantity not in ("integrate", "difference")  # which use no parameters of the samples
    batch = np.broadcast_shapes(of_model, of_states) if has_samples else of_states
    assert [x.shape for x in found] == [batch + shape for shape in shapes(model, quantity)]
    flat_state = map_state(lambda x: x.reshape(places, *x.shape[len(of_states) :]), state)
    place = np.broadcast_to(np.arange(places).reshape(of_states), batch)
    for index in np.ndindex(batch):
        one = flat[np.broadcast_to(np.arange(samples).reshape(of_model), batch)[index]] if has_samples else model
        for x, y in zip(found, computed(one, quantity, chains_of(flat_state, place[index])), strict=True):
            np.testing.assert_allclose(x[index], y, rtol=0, atol=1e-10 * np.abs(y).max(initial=1.0))


def test_states_behind_the_batch_of_a_varied_model_are_refused_with_the_remedy():
    many = rb.Model.serial_chain(2).vary(mass=np.ones((5, 2)))
    motion = many.simulate(duration=0.1, save_at=3)
    with pytest.raises(rb.ArgumentError, match=r"q \(5, 3\).*the model \(5,\).*Use model\[..., None\]"):
        many.energy(motion.q, motion.qd)
    assert many[..., None].energy(motion.q, motion.qd)[0].shape == (5, 3)
    assert rb.Model.serial_chain(2)[..., None].batch_shape == ()


@pytest.mark.parametrize("quantity", ARGUMENTS)
@pytest.mark.parametrize("batch", [(2, 3), (1,), (0,)])
def test_a_quantity_of_a_varied_model_has_the_shape_of_the_models_batch(quantity, batch):
    model = mechanism("small_floating_tree")
    values = {name: v[: np.prod(batch)].reshape(*batch, *v.shape[1:]) for name, v in varied(model, 6).items()}
    shared = random_state(model, ())
    found = computed(model.vary(**values), quantity, shared)
    # integrate uses no parameters of the samples
    own = () if quantity in ("integrate", "difference") else batch
    assert [x.shape for x in found] == [own + shape for shape in shapes(model, quantity)]
    if own == (2, 3):
        flat = model.vary(**{name: v.reshape(6, *v.shape[2:]) for name, v in values.items()})
        for x, same in zip(found, computed(flat, quantity, shared), strict=True):
            assert np.array_equal(x.reshape(same.shape), same)


def disturbed(model, state, size, copies):
    """Return the model and a state per sample with all numbers perturbed by up to this relative error."""
    rng = np.random.default_rng(5)

    def off(x):
        return x if x.dtype == bool else x * (1 + size * rng.uniform(-1, 1, x.shape))

    chains = copies * len(state.q)
    names = ("mass", "cg", "rotor_inertia", "gear_ratio", "gravity", "placement_rotation", "placement_translation")
    values = {name: off(np.stack([getattr(model, name)] * chains)) for name in names}
    inertia = off(np.stack([model.inertia] * chains))
    many = model.vary(inertia=(inertia + inertia.mT) / 2, **values)
    return many, map_state(lambda x: off(np.concatenate([x] * copies)), state)


@pytest.mark.slow_cases("christoffel_symbols-small_floating_tree")
@pytest.mark.parametrize("name", ["small_floating_tree", "arm7"])
@pytest.mark.parametrize("quantity", ARGUMENTS)
def test_float32_agrees_with_float64_to_its_own_precision(name, quantity):
    """The error allowed is nv times the effect of one rounding error in the model and one in the state."""
    model, eps = mechanism(name), np.finfo(np.float32).eps
    coarse = single(random_state(model, (4,)))
    fine = map_state(lambda x: x if x.dtype == bool else x.astype(float), coarse)
    found, exact = computed(model, quantity, coarse), computed(model, quantity, fine)
    many, states = disturbed(model, fine, eps / 2, copies=12)
    around = computed(many, quantity, states)
    for x, y, z in zip(found, exact, around, strict=True):
        assert x.dtype == np.float32
        allowed = ROUNDINGS * model.nv * np.abs(z.reshape(12, 4, -1) - y.reshape(4, -1)).max((0, 2))
        if quantity == "force_balance_residual":  # zero except for round-off
            allowed = ROUNDINGS * eps * model.nv * Magnitudes(model, fine).force
        assert_within(x, y, allowed)


def test_power_accepts_wrenches_of_any_type_and_layout():
    """Wrenches may be objects, or float64 beside velocities in float32."""
    model = mechanism("small_floating_tree")
    state = random_state(model, (3,))
    q, qd, tau, wrenches = (getattr(single(state), name) for name in ("q", "qd", "tau", "wrenches"))
    expected = model.power(q, qd, tau, wrenches)
    assert expected.dtype == np.float32
    assert np.array_equal(model.power(q, qd, tau, wrenches[..., ::-1].copy()[..., ::-1]), expected)
    in_float64 = model.power(*(x.astype(float) for x in (q, qd, tau, wrenches)))
    for loads in (wrenches.astype(object), wrenches.astype(float), wrenches.tolist()):
        found = model.power(q, qd, tau, loads)
        assert found.dtype == np.float64
        assert np.array_equal(found, in_float64)


@pytest.mark.parametrize("quantity", ["gravity_forces", "center_of_mass", "solve_mass_matrix", "bias_forces"])
def test_float32_in_any_container_gives_float32(quantity):
    """Velocities or accelerations that are not given are zeros in the precision of the given arguments."""
    model = mechanism("small_floating_tree")
    state = single(random_state(model, (3,)))
    (expected,) = computed(model, quantity, state)
    (found,) = computed(model, quantity, map_state(lambda x: pandas.DataFrame(x) if x.ndim == 2 else x, state))
    assert found.dtype == np.float32
    assert np.array_equal(found, expected)


TAKES_A_FRAME = (
    *(rb.Model.jacobian, rb.Model.jacobian_derivative, rb.Model.frame_poses, rb.Model.with_payload, rb.Model.generate),
    *(rb.Wrench, rb.SphereContact, rb.study.Measure),
)


@pytest.mark.parametrize("function", TAKES_A_FRAME, ids=lambda function: function.__name__)
def test_functions_of_a_frame_name_their_argument_frame(function):
    assert "frame" in inspect.signature(function).parameters
    if function is not rb.Model.with_payload:  # its body is an Inertia
        assert "body" not in inspect.signature(function).parameters


def test_a_jacobian_accepts_the_name_of_a_body_or_a_fixed_frame():
    builder = rb.ModelBuilder()
    builder.add_body("arm", joint=rb.Revolute(), inertia=rb.Inertia.rod(1.0, mass=1.0))
    builder.add_body("tool", parent="arm", joint=rb.Fixed(), placement=rb.Pose((1.0, 0.0, 0.0)))
    model = builder.build()
    assert model.jacobian([0.0], frame="tool")[:, 0].tolist() == [0, 1, 0, 0, 0, 1]
    assert model.jacobian([0.0], frame="arm", point=(1.0, 0.0, 0.0))[:, 0].tolist() == [0, 1, 0, 0, 0, 1]
    assert model.jacobian_derivative([0.0], [2.0], frame="tool")[:, 0].tolist() == [-2, 0, 0, 0, 0, 0]
    assert model.with_payload(frame="tool", mass=1.0).cg[0].tolist() == [0.5, 0, 0]
