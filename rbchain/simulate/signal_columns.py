"""Columns of `simulate` for derivatives with respect to the values of the tables that drives read.

A table is linear in its values. Its derivative with respect to one value is therefore a signal, the weight of this
value. For a linear table, it is a hat. For a held table, it is 1 within one interval. For a cubic table, it is a spline
of unit values. The weights are added to the signals of the drives, so that steps end at their breaks, even where the
table itself has none, such as a table of zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..acting.drive_table import new_table
from ..acting.drives import ONE_JOINT, PID, ComputedTorque, PrescribedAcceleration, PrescribedForce
from ..acting.flatten_drives import DERIVATIVES
from ..acting.numeric_fields import RANDOM, SIGNAL, fields_of_kind
from ..acting.sampled import Sampled, controller_of
from ..acting.signal_tables import table_of
from ..acting.signals import Signal, as_signal
from ..core.control import drive_layout
from ..core.linear import parameter_layout as codes
from ..errors import ArgumentError

if TYPE_CHECKING:
    from ..facade.model import Model

#: Name of the derivatives with respect to the values of tables.
SIGNALS = "signal"
#: Drives with derivatives with respect to the values of their tables.
SUPPORTED = PrescribedForce, PID, ComputedTorque, PrescribedAcceleration


class Weights(NamedTuple):
    """The columns for the values of tables, and the weight of each value.

    Attributes
    ----------
    columns : (COLUMN_ROWS, values) array of int
        As `SensitivitySettings.columns`. COLUMN_SIGNAL counts the weights from 0.
    signals : list of tuples
        The name of the table, the weight, and the highest derivative of it that the drive reads.
    """

    columns: np.ndarray
    signals: list[tuple[str, Signal, int]]


def weights_of(model: Model, drives: Sequence[Any], given: Sequence[Any]) -> Weights:
    """Return the weights of the values of all tables, in the order of the drives, their fields and the values.

    Parameters
    ----------
    model : Model
    drives : list of drives
        With the random signals of the samples.
    given : list of drives
        The same drives as the caller gave them.

    Raises
    ------
    ArgumentError
        If a drive has no derivatives with respect to its tables, or a signal changes with time in another way than a
        table.
    """
    if not isinstance(drives, (list, tuple)):  # which flatten_actions refuses
        drives = given = ()
    found = [
        (controller_of(drive), controller_of(own), isinstance(drive, Sampled))
        for drive, own in zip(drives, given, strict=True)
        if isinstance(controller_of(drive), ONE_JOINT)
    ]
    table, columns = new_table(model, [drive for drive, _, _ in found])
    numbers: list[tuple[int, int, int]] = []
    signals: list[tuple[str, Signal, int]] = []
    for (drive, own, is_sampled), d in zip(found, columns, strict=True):
        for field in fields_of_kind(drive, SIGNAL):
            what = f"{drive.label()}: {field}"
            weights = _weights(what, getattr(drive, field), getattr(own, field))
            if weights and not isinstance(drive, SUPPORTED):
                raise ArgumentError(
                    f'derivatives contains "{SIGNALS}", but {what} is a table whose derivatives are not computed; '
                    f"expected tables in {', '.join(kind.__name__ for kind in SUPPORTED)}. Use one of them, or "
                    "finite differences of simulations"
                )
            kind = _kind_of(drive, field)
            numbers += [(kind, table[drive_layout.DOF, d], d)] * len(weights)
            order = DERIVATIVES[type(drive)] if kind == codes.BY_REFERENCE else 0
            order = -1 if is_sampled else order  # between the instants, its signals do not act
            signals += [(what, weight, order) for weight in weights]
    rows = np.array(numbers, np.int64).reshape(-1, codes.COLUMN_SIGNAL).T
    return Weights(np.concatenate([rows, np.arange(len(signals))[None]]), signals)


def _kind_of(drive: Any, field: str) -> int:
    """Return the kind of the columns of a field of a drive."""
    if isinstance(drive, PrescribedForce) or field == "feedforward":
        return codes.BY_SIGNAL_OF_FORCE
    return codes.BY_REFERENCE if isinstance(drive, (PID, ComputedTorque)) else codes.BY_ACCELERATION


def _weights(what: str, value: Any, given: Any) -> list[Signal]:
    """Return the weights of the values of a signal; none if it is a word or has no table."""
    if isinstance(given, RANDOM):
        raise ArgumentError(
            f'derivatives contains "{SIGNALS}", but {what} is a random signal, whose values are drawn; expected '
            "numbers, tables, polynomials or sines"
        )
    if isinstance(value, str):
        return []
    signal = as_signal(what, value)
    if signal.breaks.size == 1 and signal.end == np.inf:
        return []
    table = None if signal.waves.shape[-2] or signal.inputs else table_of(signal)
    if table is None:
        raise ArgumentError(
            f'derivatives contains "{SIGNALS}", but {what} is {signal!r}, which is not the table of its values at its '
            "breaks and its end; expected a table, such as rb.Signal.table(times, values), without sines and inputs. "
            "Add the sines and inputs in another drive. All samples have to share its times"
        )
    if table.interpolation == "held":
        return _weights_of_held(signal)
    times = table.times
    if table.interpolation == "cubic":
        every = Signal.table(times, np.eye(times.size))
        return [every.of_sample(i, (times.size,)) for i in range(times.size)]
    return _weights_of_linear(times)


def _weights_of_held(signal: Signal) -> list[Signal]:
    """Return a signal for each piece that is 1 in this piece and 0 elsewhere."""
    found, pieces = [], signal.breaks.size
    for i in range(pieces):
        kept = np.unique(np.clip([0, i, i + 1], 0, pieces - 1))
        found.append(Signal(np.where(kept == i, 1.0, 0.0)[:, None], breaks=signal.breaks[kept], end=signal.end))
    return found


def _weights_of_linear(times: np.ndarray) -> list[Signal]:
    """Return the hat of each time (m,): it is 1 there, and 0 from the adjacent times."""
    found, last = [], times.size - 1
    for i in range(times.size):
        kept = np.unique(np.clip([0, i - 1, i, i + 1, last], 0, last))
        found.append(Signal.table(times[kept], np.where(kept == i, 1.0, 0.0), interpolation="linear"))
    return found
