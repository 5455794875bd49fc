"""The numbers of signals that may differ between samples, by the names of the arguments of their constructors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..common.real_arrays import FloatArray
from .random_processes import PROCESSES
from .random_signals import RandomSignal
from .signal_arithmetic import SignalSum
from .signal_tables import SignalTable, table_of
from .signals import Signal, SignalLike, ThreeSignals, as_signal

#: SI units by the names of the numbers; the unit of the signal, and an empty one if it is not the same for all.
OF_SIGNAL = "unit of the signal"
UNITS = {
    **dict.fromkeys(("value", "values", "offset", "amplitude", "std"), OF_SIGNAL),
    **dict.fromkeys(("coefficients", "intensity"), ""),
    **dict.fromkeys(("times", "delay", "correlation_time", "peak_period"), "s"),
    **dict.fromkeys(("significant_wave_height", "depth"), "m"),
    "angular_frequency": "rad/s",
    "phase": "rad",
    "factor": "1",
}
OF_SINES = ("amplitude", "angular_frequency", "phase")
OF_TABLES = ("times", "values", "delay")


class SignalNumbers(NamedTuple):
    """Numbers of a signal with one name.

    Attributes
    ----------
    values : (..., m) array
    changed : function
        It returns the signal with other values, for numbers that do not depend on others.
    is_list : bool
        Whether the argument of the constructor is a list, even of one value.
    """

    values: FloatArray
    changed: Callable[[FloatArray], Any] | None = None
    is_list: bool = False

    @property
    def entries(self) -> int:
        """Number of the entries of a list; 0 for a single number."""
        count = self.values.shape[-1]
        return count if self.is_list or count > 1 else 0


def numbers_of(signal: SignalLike) -> dict[str, SignalNumbers]:
    """Return the numbers of a signal by their names.

    In a sum of random signals and sines, the numbers with one name follow each other in the order of the terms.
    """
    if isinstance(signal, RandomSignal):
        names = [name for name in UNITS if name in signal.parameters]
        return {name: SignalNumbers(*_of_random_signals([signal], name, lambda new: new[0])) for name in names}
    if isinstance(signal, SignalSum):
        return _of_sum(signal)
    found = as_signal("signal", signal)
    return _of_polynomial(found) | _of_sines(found, lambda new: new)


def with_numbers(signal: SignalLike, new: Mapping[str, FloatArray]) -> Any:
    """Return a signal with other numbers (..., m) by their names, which `numbers_of` returns."""
    of_table = {name: new[name] for name in OF_TABLES if name in new}
    if of_table:
        given = as_signal("signal", signal)
        table = _table_alone(given)
        assert table is not None
        times = of_table.get("times", table.times) + of_table.get("delay", 0.0)
        changed = table._replace(times=times, values=of_table.get("values", table.values)).signal()
        signal = replace(changed, waves=given.waves, inputs=given.inputs)
    for name in [name for name in new if name not in of_table]:
        change = numbers_of(signal)[name].changed
        assert change is not None
        signal = change(new[name])
    return signal


def three_components(components: ThreeSignals) -> tuple[SignalLike, ...]:
    """Return the three component signals of a sequence of three or of an array (..., 3)."""
    return tuple(components) if len(components) == 3 else tuple(np.moveaxis(np.asarray(components), -1, 0))


def _of_polynomial(signal: Signal) -> dict[str, SignalNumbers]:
    """Return the numbers of a constant, a polynomial or a table, apart from sines."""
    pieces, count = signal.coefficients.shape[-2:]
    if pieces > 1 or signal.breaks[..., 0].any() or np.isfinite(signal.end):
        return _of_table(signal)
    name = "coefficients" if count > 1 else "offset" if signal.waves.shape[-2] or signal.inputs else "value"
    values = signal.coefficients[..., 0, :]
    return {name: SignalNumbers(values, lambda new: replace(signal, coefficients=new[..., None, :]), count > 1)}


def _of_table(signal: Signal) -> dict[str, SignalNumbers]:
    """Return the times and values of a table; none for other piecewise polynomials, whose pieces depend on each other.

    The delay is added to all times.
    """
    table = _table_alone(signal)
    if table is None:
        return {}
    return {
        "times": SignalNumbers(table.times, is_list=True),
        "values": SignalNumbers(table.values, is_list=True),
        "delay": SignalNumbers(np.zeros(1)),
    }


def _table_alone(signal: Signal) -> SignalTable | None:
    return table_of(replace(signal, waves=np.zeros((0, 3)), inputs=()))


def _of_sines(signal: Signal, result: Callable[[Signal], Any]) -> dict[str, SignalNumbers]:
    """Return the numbers of the sines of a signal. `result` returns the whole signal from a changed part."""

    def change(column: int) -> Callable[[FloatArray], Any]:
        def changed(values: FloatArray) -> Any:
            waves = np.array(np.broadcast_to(signal.waves, (*values.shape, 3)))
            waves[..., column] = values
            return result(replace(signal, waves=waves))

        return changed

    names = OF_SINES if signal.waves.shape[-2] else ()
    return {name: SignalNumbers(signal.waves[..., i], change(i)) for i, name in enumerate(names)}


def _of_random_signals(
    signals: Sequence[RandomSignal], name: str, result: Callable[[list[RandomSignal]], Any]
) -> tuple[FloatArray, Callable[[FloatArray], Any]]:
    """Return the numbers of random signals that have this parameter, and the function that changes them."""
    values = np.stack(np.broadcast_arrays(*(signal.parameters[name] for signal in signals)), -1).astype(float)

    def changed(new: FloatArray) -> Any:
        columns = zip(signals, np.moveaxis(new, -1, 0), strict=True)
        return result([_with_parameter(signal, name, column) for signal, column in columns])

    return values, changed


def _with_parameter(signal: RandomSignal, name: str, value: FloatArray) -> RandomSignal:
    given = {**signal.parameters, name: value}
    return PROCESSES[signal.kind](**given, seed=signal.seed, channel=signal.channel)


def _of_sum(signal: SignalSum) -> dict[str, SignalNumbers]:
    """Return the numbers of the random signals and of the sines of a sum."""
    random = list({id(term.signal): term.signal for term in signal.terms}.values())

    def with_random(old: Sequence[RandomSignal]) -> Callable[[list[RandomSignal]], SignalSum]:
        def changed(new: list[RandomSignal]) -> SignalSum:
            by_identity = {id(one): other for one, other in zip(old, new, strict=True)}
            terms = (term._replace(signal=by_identity.get(id(term.signal), term.signal)) for term in signal.terms)
            return replace(signal, terms=tuple(terms))

        return changed

    found = _of_sines(signal.rest, lambda new: replace(signal, rest=new))
    for name in UNITS:
        having = [one for one in random if name in one.parameters]
        if having:
            found[name] = SignalNumbers(*_of_random_signals(having, name, with_random(having)))
    return found
