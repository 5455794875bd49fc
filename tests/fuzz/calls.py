"""Calls of a model's quantities with random arguments, and what must hold of each."""

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import strategies as st

import rbchain as rb

from ..conftest import mechanism
from ..quantities import (
    arrays_of,
    assert_within,
    called,
    computed,
    in_quaternions,
    map_state,
    out_shape,
    random_state,
    single,
    usual_rounding,
    with_argument,
)
from .cases import ended
from .layouts import LAYOUTS, TYPES, not_real_arrays

# All joint types, some with motors; the numbers of positions and velocities differ.
MODEL = "every_joint_tree"
NAMES = {"integrate": {"qd": "v"}, "difference": {"q": "q0"}}
NOT_FINITE = (np.nan, np.inf, -np.inf)
EXTREME = (*NOT_FINITE, 1.7e308, -1e300, 1e155, 3e38, -1e17, 5e-324, -1e-310, -0.0)


class Call(NamedTuple):
    """A quantity of the model for a batch of states, which follow from the seed."""

    quantity: str
    batch: tuple[int, ...]
    seed: int
    float32: bool

    def state(self) -> Any:
        found = random_state(mechanism(MODEL), self.batch, self.seed)
        return single(found) if self.float32 else found


def calls(quantities, batches):
    """Strategy for calls of these quantities with batches of these shapes."""
    return st.builds(Call, *map(st.sampled_from, (quantities, batches)), st.integers(0, 999), st.booleans())


def arguments_of(call):
    """Strategy for the name of one of a call's arrays of real numbers."""
    return st.sampled_from(arrays_of(call.quantity))


def name_of(call, argument):
    """The argument's name in the signature."""
    return NAMES.get(call.quantity, {}).get(argument, argument)


def assert_same_bits(found, expected):
    for x, y in zip(found, expected, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)


# --- layouts and types of memory --------------------------------------------------------------------------------------


def in_type(model, state, name):
    """The state with numbers that a type holds exactly: small whole ones, quaternions [0, 0, 0, 1]."""

    def whole(x):
        if x.dtype == bool:
            return x
        found = np.round(2 * x)
        if x.shape[-1] == model.nq:
            found[..., in_quaternions(model)] = model.neutral()[in_quaternions(model)]
        return (np.abs(found) if name.startswith("u") else found).astype(name)

    return map_state(lambda x: x if name == "float64" else whole(x), state)


def check_layouts(call, data):
    """Check that the result equals that of contiguous float64, or of float32 if all arguments are float32."""
    model, state = mechanism(MODEL), call.state()
    given, clean = state, state
    for argument in arrays_of(call.quantity):
        kind = data.draw(st.sampled_from(("float32",) if call.float32 else TYPES), label=f"type of {argument}")
        layout = data.draw(st.sampled_from(sorted(LAYOUTS)), label=f"layout of {argument}")
        value = getattr(in_type(model, state, kind), argument)
        is_flat = value.size == 0 or not call.batch
        if (argument == "prescribed" and layout.startswith(("tuples", "objects", "readable"))) or is_flat:
            layout = "contiguous"
        stored = LAYOUTS[layout](value)
        given = with_argument(given, argument, stored)
        read = np.asarray(stored)
        exact = read if read.dtype in (np.float32, bool) else read.astype(np.float64)
        clean = with_argument(clean, argument, np.ascontiguousarray(exact))
    if not all(getattr(clean, name).dtype in (np.float32, bool) for name in arrays_of(call.quantity)):
        clean = map_state(lambda x: x if x.dtype == bool else x.astype(np.float64), clean)
    assert_same_bits(computed(model, call.quantity, given), computed(model, call.quantity, clean))


def check_refusal(call, argument, data):
    """Check that anything but a real array of the right shape is refused with the name of the argument."""
    model, state = mechanism(MODEL), call.state()
    wrong = not_real_arrays(getattr(state, argument))
    if argument == "wrenches":
        del wrong["nothing"]  # None means that there are no wrenches
    if argument == "prescribed":
        del wrong["true and false"]
    what = data.draw(st.sampled_from(sorted(wrong)), label=f"{argument} is")
    with pytest.raises(rb.ArgumentError, match=rf"^{name_of(call, argument)}\b"):
        computed(model, call.quantity, with_argument(state, argument, wrong[what]))


# --- out= -------------------------------------------------------------------------------------------------------------

UNFIT = {
    "of another shape": lambda out: np.zeros((*out.shape, 2), out.dtype),
    "of another type": lambda out: np.zeros(out.shape, np.float32 if out.dtype == np.float64 else np.float64),
    "strided": lambda out: LAYOUTS["strided"](out[..., None])[..., 0],
    "read-only": LAYOUTS["read-only"],
    "unaligned": LAYOUTS["unaligned"],
    "of swapped bytes": LAYOUTS["swapped bytes"],
    "masked": np.ma.asarray,
    "a list": np.ndarray.tolist,
}


def with_out(model, call, state, out):
    """Return the results of a call with `out` in the form of `computed`."""
    found = called(model, call.quantity, state, out=out)
    found = (found.translation, found.rotation) if isinstance(found, rb.Pose) else found
    return found if isinstance(found, tuple) else (found,)


def check_out(call, data):
    """Check that `out` holds the result to the last bit, or is refused."""
    model, state = mechanism(MODEL), call.state()
    clean = computed(model, call.quantity, state)
    shape = (*call.batch, *out_shape(model, call.quantity))
    size, dtype = int(np.prod(shape)), clean[0].dtype
    argument = data.draw(st.sampled_from(arrays_of(call.quantity)), label="argument beside out")
    value = getattr(state, argument)
    memory = np.full(size + value.nbytes // dtype.itemsize + 2, np.nan, dtype)
    out = memory[:size].reshape(shape)
    # the argument begins within `out` or after it
    start = data.draw(st.integers(0, size), label="first number of the argument, counted in out")
    beside = memory[start:].view(value.dtype)[: value.size].reshape(value.shape)
    beside[...] = value
    state = with_argument(state, argument, beside)
    unfits = [what for what in sorted(UNFIT) if size > 1 or what != "strided"]
    unfit = data.draw(st.sampled_from([None, None, *unfits]), label="out is")
    given = out if unfit is None else UNFIT[unfit](out)
    if unfit is not None or np.shares_memory(out, beside):
        with pytest.raises(rb.ArgumentError, match=r"^out "):
            with_out(model, call, state, given)
        np.testing.assert_array_equal(beside, value)
        ended("refused")
        return
    found = with_out(model, call, state, given)
    assert_same_bits(found, clean)
    assert all(np.shares_memory(x, out) for x in found if x.size)
    ended("written")


# --- extreme values ---------------------------------------------------------------------------------------------------


def entries(model, own, data):
    """Choose the entries of a sample's argument to replace: one number, or a whole quaternion."""
    at = data.draw(st.integers(0, own.size - 1), label="entry")
    if own.shape == (model.nq,) and in_quaternions(model)[at]:
        first = next(a for a in model.kernel_model.dofs.quaternions if a <= at < a + 4)
        return slice(first, first + 4)
    return slice(at, at + 1)


def check_extreme_values(call, argument, data):
    """Check that other samples keep their bits, and that finite results do not depend on a nonfinite number."""
    model, state = mechanism(MODEL), call.state()
    value = getattr(state, argument)
    sample = data.draw(st.tuples(*(st.integers(0, size - 1) for size in call.batch)), label="sample")
    entry = entries(model, value[sample], data)
    in_quaternion = entry.stop - entry.start == 4
    extreme = data.draw(st.sampled_from(NOT_FINITE if in_quaternion else EXTREME), label="value")

    def replaced(numbers):
        changed = value.copy()
        changed[sample].reshape(-1)[entry] = numbers
        return computed(model, call.quantity, with_argument(state, argument, changed))

    with np.errstate(over="ignore"):  # float32 has no 1e300
        spoilt = replaced(value.dtype.type(extreme))
    clean = computed(model, call.quantity, state)
    others = np.ones(call.batch, bool)
    others[sample] = False
    assert_same_bits([x[others] for x in spoilt], [x[others] for x in clean])
    if np.isfinite(extreme):
        ended("finite")
        return
    ended("not finite")
    usual = (getattr(random_state(model, call.batch, seed), argument) for seed in (2000, 2001))
    found = [replaced(x[sample].reshape(-1)[entry]) for x in usual]
    for bad, one, other in zip(spoilt, *found, strict=True):
        finite = np.isfinite(bad[sample])
        rounding = 1e3 * np.finfo(value.dtype).eps * np.abs(one[sample]).max(initial=1.0)
        np.testing.assert_allclose(one[sample][finite], other[sample][finite], rtol=0, atol=rounding)


ANGLES = st.floats(10.0, 1e300) | st.floats(-1e300, -10.0) | st.floats(-1e-300, 1e-300)


def check_angles(call, data):
    """Check that a large angle acts like the angle within one turn with the same sine and cosine of the C library."""
    model, state = mechanism(MODEL), call._replace(float32=False).state()
    turns = [at for at, dof in model.coordinate_pairs if model.dof_types[dof] == "revolute"]
    q, within = state.q.copy(), state.q.copy()
    for at in turns:
        angle = data.draw(ANGLES, label=f"q[{at}]")
        q[0, at], within[0, at] = angle, math.atan2(math.sin(angle), math.cos(angle))
    pairs = zip(
        computed(model, call.quantity, with_argument(state, "q", q)),
        computed(model, call.quantity, with_argument(state, "q", within)),
        usual_rounding(model, call.quantity, with_argument(state, "q", within)),
        strict=True,
    )
    for found, expected, allowed in pairs:
        assert_within(found, expected, allowed)
