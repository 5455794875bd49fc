"""Effects of dispersions: which of the numbers that the kernels read each dispersion changes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...acting.flatten import flatten_actions
from ...common.real_arrays import FLOAT64
from ...errors import RbchainError, StudyError
from ...facade.model import Model
from ...model.constraint_tables import constraint_quantity
from ...model.parameters import COLUMNS, WATER_COLUMNS
from ...simulate.methods import METHODS
from ..describe.parameter_table import EVENT, PARAMETERS
from .columns import Draws
from .nominal import Nominal
from .plan import Plan
from .samples import Samples

MOST_NAMES = 8  # of bodies in a description
QUANTILES = (1e-6, 0.01, 0.3, 0.5, 0.7, 0.99, 1.0 - 1e-6)  # of the distributions, at which effects are determined


def effects_of(plan: Plan) -> dict[str, str]:
    """Describe the effect of each dispersion on the arrays that the kernels read: {path: description}.

    Raises
    ------
    StudyError
        If a dispersion changes nothing at any quantile, or if all its draws are invalid.
    """
    values = plan.drawn.values(np.repeat(np.array(QUANTILES)[:, None], len(plan.columns), 1))
    descriptions = {}
    infinite = np.argwhere(~np.isfinite(values))
    if infinite.size:
        at, c = infinite[0]
        column = plan.drawn.columns[c]
        raise StudyError(
            f"{column.place}: the quantile {QUANTILES[at]:g} of {column.name!r} is {values[at, c]}; expected finite "
            "numbers. Choose a narrower or truncated distribution"
        )
    for path in plan.description.vary:
        effects: dict[str, None] = {}
        invalid = None
        of_path = [draws for draws in plan.drawn.draws if draws.path == path]
        for drawn in values:
            try:
                effects |= dict.fromkeys(_effects_of_draw(plan, of_path, drawn[None]))
            except RbchainError as error:
                invalid = error
        if not effects and invalid is not None:
            raise StudyError(f'vary."{path}": no valid draw changes the model. The last error was: {invalid}')
        if not effects:
            raise StudyError(
                f"vary.\"{path}\" has no effect on the model; expected draws that change it. If how is 'multiply', "
                "check that the model's own values are not 0 or infinite"
            )
        note = PARAMETERS[of_path[0].varied.parameter].note
        descriptions[path] = "; ".join(effects) + (f" ({note})" if note else "")
    return descriptions


def _effects_of_draw(plan: Plan, of_path: list[Draws], values: np.ndarray) -> list[str]:
    """Describe the effects of one draw (1, columns) of the dispersion with a path."""
    first = np.zeros(1, np.int64)
    changes_actions = bool(PARAMETERS[of_path[0].varied.parameter].classes)
    changes = [(draws.varied, values[:, draws.columns]) for draws in of_path]
    # with neutral changes of actions, the arrays to compare have the same shapes
    neutral = [(varied.neutral(), own) for varied, own in changes if changes_actions]
    samples = Samples(plan.nominal, first, changes)
    nominal_samples = Samples(
        plan.nominal, first, [(varied, np.full_like(own, draw)) for (varied, draw), own in neutral]
    )
    effects = _in_state(samples, nominal_samples) + _in_parameters(plan.nominal.model, samples.build())
    if changes_actions and _differ_in_actions(plan.nominal, samples, nominal_samples):
        owner = PARAMETERS[of_path[0].varied.parameter].owner
        effects.append("events" if owner == EVENT else "drives and forces")
    return effects


def _in_state(samples: Samples, nominal_samples: Samples) -> list[str]:
    """Name what differs of the initial state and the joint forces."""
    names = {"q": "initial positions", "qd": "initial velocities", "tau": "joint forces"}
    return [
        label
        for name, label in names.items()
        if not np.array_equal(getattr(samples, name), getattr(nominal_samples, name))
    ]


def _in_parameters(model: Model, many: Model) -> list[str]:
    """Name the parameters that differ from the parameters of the model, and the bodies that they belong to."""
    _, table, variation = many.kernel_model.arrays(FLOAT64)
    _, nominal, _ = model.kernel_model.arrays(FLOAT64)
    table, nominal = (x if x.ndim == 2 else x[..., 0] for x in (table, nominal))
    width = min(table.shape[1], nominal.shape[1])
    entries = {(int(r), int(c)) for r, c in np.argwhere(table[:, :width] != nominal[:, :width])}
    entries |= set() if variation is None else {(int(r), int(c)) for r, c in variation.entries}
    names = [model.body_names[body] for body in model.kernel_model.dofs.body]
    quantities: dict[str, list[str]] = {}
    for row, column in sorted(entries):
        if row > len(names):
            constraint = model.constraint_names[row - len(names) - 1]
            quantities.setdefault(constraint, []).append(constraint_quantity(column))
            continue
        groups = [name for name, columns in (COLUMNS | WATER_COLUMNS).items() if columns.start <= column < columns.stop]
        owner, quantity = ("the world", "gravity") if row == len(names) else (names[row], groups[0])
        quantities.setdefault(owner, []).append(quantity)
    owners: dict[str, list[str]] = {}
    for owner, of_owner in quantities.items():
        owners.setdefault(", ".join(dict.fromkeys(of_owner)), []).append(owner)
    return [f"{of_owner} of {_listed(bodies)}" for of_owner, bodies in owners.items()]


def _listed(names: list[str]) -> str:
    """List names; of many the first and the last."""
    if len(names) > MOST_NAMES:
        names = [*names[: MOST_NAMES - 1], "...", f"{names[-1]} ({len(names)} bodies)"]
    return ", ".join(names)


def _differ_in_actions(nominal: Nominal, samples: Samples, nominal_samples: Samples) -> bool:
    """Whether the arrays of drives, forces and events differ."""
    simulate = nominal.simulation
    settings, implicit = ((1,), simulate.duration, FLOAT64), METHODS[simulate.method].is_implicit_in_joints
    tables = [
        flatten_actions(nominal.model, *settings, (c.drives, c.forces, c.events), implicit)[0]
        for c in (samples, nominal_samples)
    ]
    return not _same(*tables)


def _same(first: Any, second: Any) -> bool:
    """Compare two nested tuples of arrays."""
    if isinstance(first, np.ndarray):
        return np.array_equal(first, second, equal_nan=first.dtype.kind == "f")
    if isinstance(first, tuple):
        return len(first) == len(second) and all(_same(*pair) for pair in zip(first, second, strict=True))
    return True
