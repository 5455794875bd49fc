"""Other values and other names for the inputs of drives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from ..common.misspelled import did_you_mean
from ..common.real_arrays import excerpt
from ..errors import ArgumentError, UnknownNameError
from .inputs import Input, InputTerm
from .numeric_fields import Drive, fields_for_inputs
from .signal_arithmetic import AddsSignals
from .signals import Signal, SignalLike, as_signal

D = TypeVar("D", bound=Drive)


def inputs_of_drives(drives: Sequence[Drive]) -> dict[str, InputTerm]:
    """Return a term of each input in the drives of joints, by the name of the input."""
    signals = (getattr(drive, field) for drive in drives for field in fields_for_inputs(drive))
    return {term.name: term for signal in signals for term in _terms_of(signal)}


def with_values(drives: Sequence[D], values: Mapping[str, SignalLike]) -> tuple[D, ...]:
    """Return drives with other values of inputs. A signal replaces its input.

    Raises an ArgumentError if the drives do not have an input, or a number does not fit its range.
    """
    if not isinstance(values, Mapping):
        raise ArgumentError(f'inputs is {excerpt(values)}; expected a dict, such as {{"motor": 1.0}}')
    known = inputs_of_drives(drives)
    for name in values:
        if name not in known:
            found = f"they have {excerpt([*known])}" if known else "they have none"
            hint = did_you_mean(name, known) if isinstance(name, str) else ""
            raise UnknownNameError(f"the drives of the model have no input {excerpt(name)}; {found}{hint}")

    def changed(signal: Signal) -> SignalLike:
        kept, found = [], replace(signal, inputs=())
        for term in signal.inputs:
            if term.name not in values:
                kept.append(term)
                continue
            value = values[term.name]
            if isinstance(value, AddsSignals) or hasattr(value, "c"):  # also SciPy's PPoly
                other = value if isinstance(value, AddsSignals) else as_signal(f"input {term.name!r}", value)
                found = found + term.factor * other
            else:
                number = Input(term.name, value, term.lower, term.upper).value
                kept.append(term._replace(value=np.asarray(number)))
        return found + replace(Signal.constant(0.0), inputs=tuple(kept)) if kept else found

    return tuple(_with_signals(drive, changed) for drive in drives)


def with_prefix(drive: D, prefix: str) -> D:
    """Return a drive whose inputs have names with a prefix."""

    def renamed(signal: Signal) -> Signal:
        terms = (term._replace(name=prefix + term.name) for term in signal.inputs)
        return replace(signal, inputs=tuple(terms))

    return _with_signals(drive, renamed)


def _terms_of(signal: SignalLike) -> Sequence[InputTerm]:
    """Return the terms of the inputs in a signal."""
    if isinstance(signal, Input):
        return as_signal("", signal).inputs
    return getattr(getattr(signal, "rest", signal), "inputs", ())  # a SignalSum has a rest


def _with_signals(drive: D, function: Callable[[Signal], SignalLike]) -> D:
    """Return a drive whose signals with inputs are the results of a function of them."""
    found: dict[str, Any] = {}
    for field in fields_for_inputs(drive):
        given = getattr(drive, field)
        if _terms_of(given):
            rest = getattr(given, "rest", None)  # of a SignalSum
            result = function(as_signal(field, given if rest is None else rest))
            found[field] = result if rest is None else replace(given, rest=Signal.constant(0.0)) + result
    return replace(drive, **found) if found else drive
