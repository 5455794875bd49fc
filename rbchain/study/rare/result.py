"""The result of a rare-event analysis."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...common.whole_files import whole_file
from ...errors import StudyError
from .estimates import Stage
from .layout import RESULT

if TYPE_CHECKING:
    import xarray

    from ...simulate.trajectory import Trajectory
    from ..study import Study

MOST_SHOWN = 5  # parameters in the table


@dataclass(frozen=True, eq=False)
class Probability:
    """The probability of a failure, as `Study.probability` returns it. `print` shows a table.

    Attributes
    ----------
    question : str
        The failure, such as "tool error > 0.005 m".
    method : str
    estimate : float
        The probability.
    interval : (float, float)
        Its 95 % confidence interval.
    coefficient_of_variation : float
        Estimated standard deviation of the estimate, divided by the estimate. Infinite without failures.
    simulations : int
        Number of simulations.
    failed : int
        Number of simulations that failed (`rb.Status`). The argument `undefined` of `Study.probability` determines how
        they are counted.
    undefined : int
        Number of simulations that succeeded, but whose measure is NaN.
    warnings : tuple of str
        A sentence for each warning that simulations have, such as joints that exceed their position limits, with their
        number. The estimate includes these simulations.
    sample : int or None
        Number of the most probable failing sample among the simulations: the sample whose standard normal values have
        the smallest norm. None without failures.
    inputs : xarray.DataArray, along `parameter`
        Random inputs of this sample, with their `units`. NaN without failures.
    importance : xarray.DataArray, along `parameter`
        Share that each random input contributes to the failures; the sum is 1. It is the excess of the mean square of
        its standard normal score in failures over 1. For a linear measure this is alpha^2 of FORM. NaN without
        failures.
    stages : tuple of Stage
        Simulations, margin and conditional probability of each stage.
    study : Study
        The study of all simulations, in their order: `study.sample(k)` simulates one of them again.
    first_order : float
        The first-order probability; NaN for methods other than "form".
    """

    question: str
    method: str
    estimate: float
    interval: tuple[float, float]
    coefficient_of_variation: float
    simulations: int
    failed: int
    undefined: int
    warnings: tuple[str, ...]
    sample: int | None
    inputs: xarray.DataArray
    importance: xarray.DataArray
    stages: tuple[Stage, ...]
    study: Study
    first_order: float = math.nan

    def motion(self, sample: int | None = None, **times: Any) -> Trajectory:
        """Simulate a sample again; its trajectory is identical to the trajectory in the analysis.

        Parameters
        ----------
        sample : int, optional
            Number of the simulation; the most probable failing sample by default.
        **times
            `save_at` or `save_every`, as for `Study.sample`.

        Raises
        ------
        StudyError
            If there was no failure, or as for `Study.sample`.
        """
        chosen = self.sample if sample is None else sample
        if chosen is None:
            raise StudyError(
                f"no failure ({self.question}) was found in {self.simulations:,} simulations; pass the number of a "
                "sample, or change the threshold"
            )
        return self.study.sample(chosen, **times)[2]

    def __repr__(self) -> str:
        low, high = self.interval
        return f"Probability({self.question!r}, {self.estimate:.3g}, 95 % from {low:.3g} to {high:.3g})"

    def __str__(self) -> str:
        low, high = self.interval
        lines = [
            f"P({self.question}) = {self.estimate:.4g}",
            f"95 % interval             {low:.4g} to {high:.4g}",
            f"coefficient of variation  {self.coefficient_of_variation:.3g}",
            f"simulations               {self.simulations:,} ({self.method})",
            f"without a number          {self.failed:,} failed, {self.undefined:,} undefined",
        ]
        lines += self.warnings
        if math.isfinite(self.first_order):
            lines.append(f"first order               {self.first_order:.4g}")
        if self.sample is not None:
            lines += [f"most probable failing sample: {self.sample}"]
            order = (-self.importance.fillna(0.0)).argsort(kind="stable").values[:MOST_SHOWN]
            names = [str(self.inputs.parameter.values[i]) for i in order]
            for i, name in zip(order, names, strict=True):
                value, unit = self.inputs.values[i], str(self.inputs.units.values[i])
                lines.append(
                    f"  {name:<{max(map(len, names))}}  {value:.6g} {unit}, importance {self.importance.values[i]:.2f}"
                )
        return "\n".join(lines)


def write_result(found: Probability, folder: Path) -> None:
    """Write the numbers of a result into a folder, with null in place of NaN and infinity."""
    plain = ("question", "method", "simulations", "failed", "undefined", "warnings", "sample")
    numbers = {name: getattr(found, name) for name in plain} | {
        "estimate": _plain(found.estimate),
        "interval": [_plain(x) for x in found.interval],
        "coefficient_of_variation": _plain(found.coefficient_of_variation),
        "parameters": [str(name) for name in found.inputs.parameter.values],
        "units": [str(unit) for unit in found.inputs.units.values],
        "inputs": [_plain(x) for x in found.inputs.values.tolist()],
        "importance": [_plain(x) for x in found.importance.values.tolist()],
        "first_order": _plain(found.first_order),
        "motion": None if found.sample is None else _motion(found),
        "stages": [[s.simulations, _plain(s.level), _plain(s.probability)] for s in found.stages],
    }
    with whole_file(folder / RESULT) as partial:
        partial.write_text(json.dumps(numbers, indent=1), encoding="utf-8")


def _motion(found: Probability) -> dict[str, Any]:
    """Return the positions of the most probable failing sample for a file."""
    motion, model = found.motion(), found.study.plan.nominal.model
    valid = np.isfinite(motion.q).all(-1)
    return {
        "t": motion.t[valid].tolist(),
        "q": motion.q[valid].tolist(),
        "labels": list(model.position_labels),
        "units": list(model.position_units),
    }


def _plain(x: float) -> float | None:
    return float(x) if abs(x) < float("inf") else None
