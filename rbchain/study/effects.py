"""The proof that every dispersion reaches the kernels: which of the numbers that they read it changes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..actions.flatten import flatten_actions
from ..chain import Model
from ..errors import RbchainError, StudyError
from ..model.flatten import COLUMNS, WATER_COLUMNS
from ..real_arrays import FLOAT64
from .description import Dispersion
from .nominal import Nominal
from .parameter_table import DRIVE, PARAMETERS, WRENCH
from .plan import Plan
from .samples import Samples

QUANTILES = (1e-6, 0.01, 0.3, 0.5, 0.7, 0.99, 1.0 - 1e-6)  # of all that is drawn


def effects_of(plan: Plan) -> dict[str, str]:
    """Describe what each dispersion changes of the arrays that the kernels read: {name: description}.

    Raises
    ------
    StudyError
        If one changes nothing, wherever in its distribution, or if all of its draws are invalid.
    """
    values, found = plan.drawn.values(np.repeat(np.array(QUANTILES)[:, None], len(plan.columns), 1)), {}
    infinite = np.argwhere(~np.isfinite(values))
    if infinite.size:
        at, c = infinite[0]
        column = plan.drawn.columns[c]
        raise StudyError(
            f"{column.place}: the draw of {column.name!r} at the probability {QUANTILES[at]:g} is {values[at, c]}; "
            "expected finite numbers"
        )
    for i, dispersion in enumerate(plan.description.vary):
        effects: dict[str, None] = {}
        refusal = None
        for drawn in values:
            try:
                effects |= dict.fromkeys(_effects_of_one(plan, dispersion, drawn[None]))
            except RbchainError as error:
                refusal = error
        if not effects:
            raise StudyError(f"vary[{i}]: {refusal or f'{dispersion.name!r} changes nothing that the kernels read'}")
        found[dispersion.name] = "; ".join(effects)
    return found


def _effects_of_one(plan: Plan, dispersion: Dispersion, values: np.ndarray) -> list[str]:
    """Describe what one draw of a dispersion (1, columns) changes."""
    nominal_samples, samples = Samples(plan.nominal, 1), Samples(plan.nominal, 1)
    neutral = dispersion if dispersion.how == "multiply" else dispersion.model_copy(update={"how": "add"})
    for draws in plan.drawn.draws:
        if draws.dispersion is dispersion:
            of_target = values[:, draws.columns]
            samples.apply(dispersion, draws.target, of_target)
            if _is_of_actions(dispersion):  # in arrays of the same shapes
                nominal_samples.apply(neutral, draws.target, np.full_like(of_target, float(neutral.how == "multiply")))
    effects = _in_state(samples, nominal_samples) + _in_parameters(plan.nominal.model, samples.build())
    return effects + (_in_actions(plan.nominal, samples, nominal_samples) if _is_of_actions(dispersion) else [])


def _is_of_actions(dispersion: Dispersion) -> bool:
    return PARAMETERS[dispersion.parameter].owner in (DRIVE, WRENCH) or dispersion.parameter == "current"


def _in_state(samples: Samples, nominal_samples: Samples) -> list[str]:
    names = {"q": "initial positions", "qd": "initial velocities", "tau": "joint forces"}
    return [
        label
        for name, label in names.items()
        if not np.array_equal(getattr(samples, name), getattr(nominal_samples, name))
    ]


def _in_parameters(model: Model, many: Model) -> list[str]:
    """Rows and columns of the parameters that are no longer those of the model, by their names."""
    _, table, variation = many.kernel_model.arrays(FLOAT64)
    _, nominal, _ = model.kernel_model.arrays(FLOAT64)
    table, nominal = (x if x.ndim == 2 else x[..., 0] for x in (table, nominal))
    width = min(table.shape[1], nominal.shape[1])
    entries = {(int(r), int(c)) for r, c in np.argwhere(table[:, :width] != nominal[:, :width])}
    entries |= set() if variation is None else {(int(r), int(c)) for r, c in variation.entries}
    names = [model.body_names[body] for body in model.kernel_model.dofs.body]
    found: dict[str, list[str]] = {}
    for row, column in sorted(entries):
        groups = [name for name, columns in (COLUMNS | WATER_COLUMNS).items() if columns.start <= column < columns.stop]
        of, group = ("the world", "gravity") if row == len(names) else (names[row], groups[0])
        found.setdefault(of, []).append(group)
    return [f"{of}: {', '.join(dict.fromkeys(groups))}" for of, groups in found.items()]


def _in_actions(nominal: Nominal, samples: Samples, nominal_samples: Samples) -> list[str]:
    """Whether the tables of what acts differ."""
    simulate = nominal.simulation
    settings = (1,), simulate.duration, FLOAT64
    tables = [
        flatten_actions(nominal.model, *settings, c.drives, c.forces, nominal.events, simulate.method == "implicit")[0]
        for c in (samples, nominal_samples)
    ]
    return [] if _same(*tables) else ["drives and wrenches"]


def _same(first: Any, second: Any) -> bool:
    """Whether two nests of arrays are the same."""
    if isinstance(first, np.ndarray):
        return np.array_equal(first, second, equal_nan=first.dtype.kind == "f")
    if isinstance(first, tuple):
        return len(first) == len(second) and all(_same(*pair) for pair in zip(first, second, strict=True))
    return True
