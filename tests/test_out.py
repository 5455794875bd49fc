"""The `out` argument of every quantity, and arguments that NumPy would convert with a loss."""

import inspect

import numpy as np
import pytest

import rbchain as rb

from .conftest import mechanism
from .quantities import ARGUMENTS, arrays_of, called, computed, out_shape, random_state, single, with_argument

pytestmark = pytest.mark.plain_python
BATCH = (11,)


def call(model, quantity, state, out):
    """Return a quantity computed with `out` in the form of `computed`."""
    return called(model, quantity, state, out=out)


def parts_of(out, quantity, count):
    """Return the results in `out`."""
    if quantity in ("body_poses", "frame_poses"):
        return out[..., :3], out[..., 3:].reshape(*out.shape[:-1], 3, 3)
    axis = len(BATCH)
    return (out,) if count == 1 else tuple(np.moveaxis(out, axis, 0))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("quantity", ARGUMENTS)
def test_out_holds_the_result_to_the_last_bit(quantity, dtype):
    model = mechanism("small_floating_tree")
    state = random_state(model, BATCH)
    state = state if dtype is np.float64 else single(state)
    expected = computed(model, quantity, state)
    out = np.full((*BATCH, *out_shape(model, quantity)), np.nan, dtype)
    found = call(model, quantity, state, out)
    found = (found.translation, found.rotation) if isinstance(found, rb.Pose) else found
    for x in found if isinstance(found, tuple) else (found,):
        assert np.may_share_memory(x, out)
    for x, y in zip(parts_of(out, quantity, len(expected)), expected, strict=True):
        np.testing.assert_array_equal(x, y)


def test_out_is_given_by_keyword():
    model = rb.Model.serial_chain(2)
    names = [name for name in dir(model) if not name.startswith("_") and callable(getattr(model, name))]
    found = {name: inspect.signature(getattr(model, name)).parameters.get("out") for name in names}
    kinds = {name: parameter.kind for name, parameter in found.items() if parameter is not None}
    assert len(kinds) > 30
    assert set(kinds.values()) == {inspect.Parameter.KEYWORD_ONLY}, kinds


@pytest.mark.parametrize("quantity", ARGUMENTS)
def test_an_unsuitable_out_is_refused(quantity):
    model = mechanism("small_floating_tree")
    state, shape = random_state(model, BATCH), (*BATCH, *out_shape(model, quantity))
    fixed = np.zeros(shape)
    fixed.flags.writeable = False
    for out in (
        np.zeros((*shape, 2)),
        np.zeros(shape, np.float32),
        np.zeros((2, *shape)).T,
        fixed,
        np.ma.zeros(shape),
        1,
    ):
        with pytest.raises(rb.ArgumentError, match=r"^out "):
            call(model, quantity, state, out)


@pytest.mark.parametrize("quantity", ARGUMENTS)
def test_an_out_that_shares_memory_with_an_argument_is_refused(quantity):
    """Results are written before the arguments of other samples are read."""
    model = mechanism("small_floating_tree")
    state, shape = random_state(model, BATCH), (*BATCH, *out_shape(model, quantity))
    for argument in arrays_of(quantity):
        given = getattr(state, argument)
        memory = np.zeros(np.prod(shape) + given.nbytes // 8 + 1)
        out = memory[: np.prod(shape)].reshape(shape)
        for offset in {0, int(np.prod(shape)) - 1}:
            overlapping = memory[offset:].view(given.dtype)[: given.size].reshape(given.shape)
            overlapping[:] = given
            with pytest.raises(rb.ArgumentError, match="out shares memory with an argument"):
                call(model, quantity, with_argument(state, argument, overlapping), out)


@pytest.mark.parametrize("quantity", ARGUMENTS)
def test_masked_and_complex_arguments_are_refused_by_name(quantity):
    """NumPy would drop the mask and the imaginary part."""
    model = mechanism("small_floating_tree")
    for batch in ((), BATCH):
        state = random_state(model, batch)
        for argument in arrays_of(quantity):
            given = getattr(state, argument)
            name = "v" if quantity == "integrate" and argument == "qd" else argument
            name = {"q": "q0", "q1": "q1"}[argument] if quantity == "difference" else name
            for bad, words in (
                (np.ma.array(given, mask=np.zeros(given.shape)), "is a masked array"),
                (np.ma.array(given, mask=np.ones(given.shape)), "is a masked array"),
                (given + 0j, "has type complex128"),
                (given + 1e-3j, "has type complex128"),
            ):
                with pytest.raises(rb.ArgumentError, match=f"^{name} {words}"):
                    computed(model, quantity, with_argument(state, argument, bad))


@pytest.mark.parametrize("name", ["q0", "qd0", "tau", "save_at", "duration", "step"])
def test_masked_and_complex_arguments_of_simulate_are_refused_by_name(name):
    arm = rb.Model.serial_chain(2)
    given = {"q0": np.zeros((3, 2)), "qd0": np.zeros((3, 2)), "tau": np.zeros((3, 2)), "duration": np.array(0.1)}
    given |= {"method": "rk4", "step": np.array(0.05), "save_at": np.array([0.0, 0.1])}
    for bad in (np.ma.array(given[name], mask=np.ones(given[name].shape)), given[name] + 1j):
        with pytest.raises(rb.ArgumentError, match=f"^{name} "):
            arm.simulate(**{**given, name: bad})
