"""User functions: compiled, so that compiled code calls them by address, or called by Python for a whole batch."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import FunctionType
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba import types

from ..common.process_options import current
from ..common.real_arrays import real_array
from ..compiling.captured import WRITES_ARE_LOST, captured_memory
from ..compiling.dependencies import dependencies_of
from ..core.control import callbacks
from ..core.sample.records import Records
from ..errors import ArgumentError
from .inputs import InputPlace
from .needs import NeededQuantities
from .packing import SampleNumbers
from .user_arguments import Layout, arguments_in_python, with_flat_arguments

NUMBER_WORDS = {5: "five", 6: "six", 7: "seven"}
#: Starts of the parts of Numba's messages that do not concern the user's function.
NOISE = re.compile(r"\n\s*\n?\s*(There (are|is) \d+ candidate|During: |File \"|- Resolution failure)")


OUTSIDE = (
    "writes to an array that is defined outside of it{}. Compiled code contains such arrays as constants; expected an "
    "array that the function creates. For working memory, such as a block of rbchain.compiled, write a driver, which "
    "gets it as an argument"
)


@dataclass(frozen=True, eq=False)
class BatchFunction:
    """A function in Python, its clock, and the arrays that it receives.

    `parameters` and `states` are arrays (..., m) in the shape of the batch. `needed` computes the quantities that
    the function needs. `failures` are the descriptions of outputs
    that are not finite, by the numbers of the samples.
    """

    what: str
    function: Callable[..., Any]
    period: float
    phase: float
    nq: int
    parameters: np.ndarray
    states: np.ndarray
    count: int
    dtype: np.dtype
    needed: NeededQuantities | None = None
    failures: dict[int, str] = field(default_factory=dict)

    def compute_outputs(self, due: np.ndarray, measured: np.ndarray) -> np.ndarray:
        """Call the function with the measured states (samples, nq + nv), and return its outputs (samples, count).

        `due` (samples,) is 1 + the index of the instant for samples that wait, and 0 for those that have ended.

        Raises
        ------
        ArgumentError
            If the function does not return numbers of the expected shape. Exceptions of the function are not changed,
            but they have a note with the time.
        """
        t, batch = self.phase + self.period * (int(due.max()) - 1), self.parameters.shape[:-1]
        measured = measured.reshape(*batch, measured.shape[-1])
        q, qd = measured[..., : self.nq].copy(), measured[..., self.nq :].copy()
        states = (self.states,) if self.states.shape[-1] else ()
        computed = () if self.needed is None else (self.needed.compute(q, qd, (due > 0).reshape(batch)),)
        try:
            returned = self.function(t, q, qd, self.parameters.copy(), *states, *computed)
        except Exception as error:
            error.add_note(f"{self.what} raised this exception at t = {t:.6g} s.")
            raise
        if states:
            self.states[...] = self.states.astype(self.dtype)  # as compiled code stores them
        found = self._checked(returned, t, (*batch, self.count)).reshape(-1, self.count)
        if np.isfinite(found).all():
            return found
        for sample in np.flatnonzero((due > 0) & ~np.isfinite(found).all(-1)):
            wrong = found[sample][~np.isfinite(found[sample])][0]
            self.failures[int(sample)] = f"{self.what} returned {wrong} at t = {t:.6g} s"
        return found

    def _checked(self, returned: Any, t: float, shape: tuple[int, ...]) -> np.ndarray:
        """Return the result of the function as an array of this shape."""
        what = f"{self.what}: the result at t = {t:.6g} s"
        found = None if returned is None else real_array(what, returned, ArgumentError)
        if found is None or found.shape != shape:
            expected = f"expected an array of shape {shape}, the batch shape of q0 and the number of outputs"
            if found is None:
                raise ArgumentError(f"{what} is None; {expected}. Return the outputs")
            raise ArgumentError(f"{what} has shape {found.shape}; {expected}")
        return found


def is_batch_function(function: Any, has_states: bool, has_needs: bool = False) -> bool:
    """Whether Python calls a user function for the whole batch, because it has no argument `out`.

    The last argument of a compiled function may have another name. It then has no default value.
    """
    if not callable(function) or hasattr(function, "py_func"):
        return False
    try:
        signature = inspect.signature(function)
        signature.bind(*arguments_in_python(has_states, has_needs))
    except (TypeError, ValueError):  # it needs more arguments, or is a built-in function without a signature
        return False
    return "out" not in signature.parameters


def rows_of_batch(name: str, values: npt.ArrayLike, batch: tuple[int, ...]) -> np.ndarray:
    """Return numbers (m,) or (..., m) as an array (..., m) in the batch shape. Raises an ArgumentError."""
    numbers = SampleNumbers(batch)
    _, count = numbers.add_row(name, values)
    rows = numbers.rows()[:, :count]
    samples = int(np.prod(batch, dtype=int))
    return np.broadcast_to(rows, (samples, count)).reshape(*batch, count).copy()


@dataclass(frozen=True, eq=False)
class UserFunction:
    """A compiled user function: its address, the function to call from Python, and the shape of its results."""

    address: int
    call: Callable[..., Any]
    results: tuple[int, ...]

    def exception(self, t: float, q: np.ndarray, qd: np.ndarray, parameters: np.ndarray) -> str:
        """Return the exception that the function raises for these arguments, such as "ValueError: too fast"."""
        try:
            self.call(float(t), q.copy(), qd.copy(), parameters.copy(), np.zeros(self.results))
        except Exception as error:  # a user function may raise any exception
            return f"{type(error).__name__}: {error}"
        return "an exception that did not occur again when the function was called with the same arguments"


@dataclass(frozen=True, eq=False)
class UserCall:
    """A user function of a simulation, and the columns of its parameters among the numbers of the actions.

    `needed` computes the quantities that the function needs, for its exceptions.
    """

    what: str
    function: UserFunction
    first: int
    count: int
    needed: NeededQuantities | None = None


@dataclass(frozen=True, eq=False)
class UserCalls:
    """The user functions of a simulation by the codes of `BlockActions.failures`, and the numbers of all samples.

    `batch_functions` are those that Python calls for the whole batch. `inputs` are the places of the inputs that a
    stepper writes.
    """

    functions: dict[int, UserCall]
    given: np.ndarray
    dtype: np.dtype
    batch_functions: dict[int, BatchFunction]
    inputs: Sequence[InputPlace] = ()

    def failure(self, records: Records, sample: int, nq: int) -> str:
        """Describe the failed call of a sample: the function, its exception and the time."""
        code = int(records.failures[sample])
        if code in self.batch_functions:
            return self.batch_functions[code].failures[sample]
        call = self.functions[code]
        t, *_ = arguments = records.failed_calls[sample]
        parameters = self.given[min(sample, len(self.given) - 1), call.first : call.first + call.count]
        rounded = parameters.astype(self.dtype).astype(np.float64)  # as the simulation passed them
        q, qd = arguments[1 : 1 + nq], arguments[1 + nq :]
        if call.needed is not None:
            rounded = np.concatenate([rounded, call.needed.numbers_of_sample(sample, q, qd)])
        exception = call.function.exception(t, q, qd, rounded)
        return f"{call.what} raised {exception} at t = {t:.6g} s"


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of a function for messages."""
    name = str(getattr(function, "__name__", function))
    return "a lambda" if name == "<lambda>" else repr(name)


def user_function(
    what: str,
    function: Callable[..., Any],
    sizes: tuple[int, int, int],
    results: tuple[int, ...],
    states: int = 0,
    in_python: bool = False,
    computed: Layout = (),
) -> UserFunction:
    """Compile a user function for flat arrays q, qd and parameters of these sizes, once in each process.

    Its argument `out` has the shape `results`. With discrete states, the function has a further argument before `out`,
    an array of this length. With `computed`, the last argument before `out` is a named tuple of these arrays, whose
    values follow the parameters. `in_python` states whether it could also be a function in plain Python without the
    argument `out`. With `rb.options(boundscheck=True)`, the function checks the bounds of its arrays.

    Raises ArgumentError, with Numba's reason, if the function cannot be compiled.
    """
    arguments = (*arguments_in_python(states > 0, bool(computed)), "out")
    expected = f"function({', '.join(arguments)})"
    if in_python and not hasattr(function, "py_func"):
        _check_parameters_in_python(what, function, arguments)
    if not (isinstance(function, FunctionType) or hasattr(function, "py_func")):
        raise ArgumentError(f"{what}: function is {function!r}; expected a {expected}")
    plain = getattr(function, "py_func", function)
    try:
        inspect.signature(plain).bind(*arguments)
    except TypeError as error:
        found = f"{plain.__name__}{inspect.signature(plain)}"
        or_in_python = f", or ({', '.join(arguments[:-1])}) for a function in plain Python" if in_python else ""
        raise ArgumentError(
            f"{what}: {found} cannot be compiled as a {expected}: {error}. Give it these "
            f"{NUMBER_WORDS[len(arguments)]} parameters{or_in_python}"
        ) from None
    if not states and [*inspect.signature(plain).parameters][-1] == "states":
        raise ArgumentError(
            f"{what}: the last parameter of {name_of(plain)} is called states, but there are no states; expected a "
            f"{expected}. Pass states=[...] to Sampled, or rename the parameter to out"
        )
    captured = captured_memory(function)
    if captured is not None:
        raise ArgumentError(f"{what}: {name_of(plain)} {WRITES_ARE_LOST.format(captured)}")
    # compiled code contains the values of globals and of closures
    identity = None if numba.config.DISABLE_JIT else dependencies_of(function).digest
    return _compiled(what, function, sizes, results, (states, computed), current().boundscheck, identity)


def _check_parameters_in_python(what: str, function: Any, arguments: Sequence[str]) -> None:
    """Raise an ArgumentError if a function without `out` does not have the parameters of a function in plain Python."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # not callable, or without a signature
        return
    if "out" in signature.parameters or len(signature.parameters) >= len(arguments):
        return
    try:
        signature.bind(*arguments[:-1])
    except TypeError as error:
        found, expected = getattr(function, "__name__", type(function).__name__), ", ".join(arguments[:-1])
        raise ArgumentError(
            f"{what}: {found}{signature} cannot be called with ({expected}): {error}; expected function({expected}) in "
            f"plain Python, or function({expected}, out), which is compiled. Give it these parameters"
        ) from None


@lru_cache(maxsize=256)
def _compiled(
    what: str,
    function: Callable[..., Any],
    sizes: tuple[int, int, int],
    results: tuple[int, ...],
    further: tuple[int, Layout],
    boundscheck: bool,
    identity: str | None,
) -> UserFunction:
    """Implement `user_function`; `further` are the number of states and the layout of the computed quantities."""
    (nq, nv, parameters), (states, computed) = sizes, further
    expected = ", ".join([*arguments_in_python(states > 0, bool(computed)), "out"])
    if states or computed:
        if not numba.config.DISABLE_JIT:
            function = _dispatcher(function, boundscheck)
        function = with_flat_arguments(function, parameters, results[0], states, computed)
        results = (results[0] + states,)
        parameters += sum(int(np.prod(shape)) for _, shape in computed)
    if numba.config.DISABLE_JIT:

        def enter_plain(t: float, q: np.ndarray, qd: np.ndarray, own: np.ndarray, out: np.ndarray) -> None:
            function(t, q, qd, own, out.reshape(results))

        callbacks.plain_functions[id(enter_plain)] = enter_plain
        return UserFunction(id(enter_plain), function, results)
    compiled = _dispatcher(function, boundscheck)
    number, numbers = types.CPointer(types.float64), types.Array(types.float64, 1, "C")

    def enter(t: float, q: Any, qd: Any, own: Any, out: Any) -> int:
        return callbacks.call_reports_failure(
            compiled,
            t,
            numba.carray(q, (nq,)),
            numba.carray(qd, (nv,)),
            numba.carray(own, (parameters,)),
            numba.carray(out, results),
        )

    given = (types.float64, numbers, numbers, numbers, types.Array(types.float64, len(results), "C"))
    try:
        compiled.compile(given)
        entry = numba.cfunc(types.int64(types.float64, number, number, number, number))(enter)
    except Exception as error:  # Numba's errors have no common base class
        if "Cannot modify readonly array" in str(error):
            raise ArgumentError(f"{what}: {name_of(function)} {OUTSIDE.format(place_of(error))}") from error
        raise ArgumentError(
            f"{what}: {name_of(function)} cannot be compiled as a function({expected}): {reason_of(error)}. "
            "Use numbers, NumPy arrays and functions that numba.njit accepts"
        ) from error
    (overload,) = (found for found in compiled.overloads.values() if found.signature.args == given)
    if overload.signature.return_type != types.none:
        raise ArgumentError(
            f"{what}: {name_of(function)} returns a value of type {overload.signature.return_type}, which the "
            "simulation does not use; expected no return value. Write the results to the last argument, such as "
            "out[0] = ..."
        )
    _kept.append(entry)
    return UserFunction(entry.address, compiled, results)


def _dispatcher(function: Callable[..., Any], boundscheck: bool) -> Any:
    """Return the function under `numba.njit`. One that is compiled already is kept, unless bounds are checked."""
    if not hasattr(function, "py_func"):
        return numba.njit(boundscheck=boundscheck or None)(function)
    if not boundscheck:
        return function
    options = {**function.targetoptions, "boundscheck": True}  # type: ignore[attr-defined]
    return numba.jit(**{"nopython": True, **options})(function.py_func)


def reason_of(error: Exception) -> str:
    """Return the part of Numba's message that concerns the user's function, with its line."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip()
    text = re.sub(r"^Failed in \w+ mode pipeline \(step: [^)]*\)\s*", "", text)
    text = re.sub(r"^- Resolution failure for [^\n]*\n", "", text)
    reason = " ".join(NOISE.split(text)[0].split())
    specific = re.search(r"raised a specific error:\s*\w+: ([^\n]+)", text)
    parts, place = [reason.rstrip("."), *([specific[1].rstrip(".")] if specific else [])], place_of(error)
    return "; ".join(parts) + (place if place[2:].partition(",")[0] not in reason else "")


def place_of(error: Exception) -> str:
    """Return the file and the line from Numba's message, in parentheses."""
    place = re.search(r"\bat (\S[^\n]*?) \((\d+)\)", str(error))
    return f" ({place[1]}, line {place[2]})" if place else ""


# Compiled code holds only the addresses, so the functions must be kept alive here.
_kept: list[Any] = []
