"""The samples of a sensitivity analysis: checks, simulations, and indices of one measure or of all of them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...common.real_arrays import whole_number
from ...common.whole_files import whole_file
from ...errors import SimulationWarning, StudyError
from ..plan.checks import refuse_noise
from ..run.settings_of_run import settings_of_run
from ..store.capacity import total_memory, with_unit
from ..store.layout import INDICES
from .survivors import warnings_in

if TYPE_CHECKING:
    import xarray

    from ..study import Study

#: The methods of `Study`, for messages.
FUNCTIONS = {"sobol": "Study.sobol_indices", "morris": "Study.morris", "shapley": "Study.shapley_effects"}
OF_PAIRS = "other"  # the second axis of indices of pairs of parameters
ROUND_OFF = 1e-12  # relative change of a measure that counts as constant: simulations are less accurate


class IndexSamples:
    """The samples of a sensitivity analysis of a measure, or of all measures if it is None.

    Raises a StudyError if the method does not support the study.
    """

    def __init__(
        self, study: Study, measure: str | None, method: str, base_samples: int, settings: dict[str, Any]
    ) -> None:
        self.study, self.method, self.measure, plan = study, method, measure, study.plan
        self.of_run = {"on_failure": "ignore"} | settings_of_run(study.run, FUNCTIONS[method], settings)
        self.warns = "on_failure" not in settings  # about samples that succeed; errors describe the samples that fail
        self.measures = plan.chosen_measures(measure)
        if plan.table is not None:
            raise StudyError(
                "the draws of this study come from a table, but a sensitivity analysis needs the distributions; choose "
                "another design"
            )
        if plan.drawn.correlations and method != "shapley":
            raise StudyError(
                f"draws of this study are correlated, but {FUNCTIONS[method]} needs independent draws; use "
                "Study.shapley_effects, or remove correlate and multivariate normal distributions"
            )
        if not plan.columns:
            raise StudyError("the study has no dispersions, but a sensitivity analysis needs at least one; add vary")
        refuse_noise(plan.nominal, [draws.varied.parameter for draws in plan.drawn.draws])
        self.base_samples = whole_number("base_samples", base_samples, StudyError, least=2)
        needed = 8 * self.base_samples * (len(plan.columns) + 2) * (len(plan.columns) + 1)
        if needed > total_memory():
            raise StudyError(
                f"base_samples is {self.base_samples:,}: the design needs {with_unit(needed)} of memory, but this "
                f"machine has {with_unit(total_memory())}; reduce base_samples"
            )

    def indices(
        self, values: np.ndarray, analyzed: Callable[[np.ndarray], Mapping[str, np.ndarray]], out: str | Path | None
    ) -> xarray.Dataset:
        """Simulate samples with these draws (m, d); return the indices that `analyzed` computes from a measure (m,).

        Indices have the axis `parameter`, and indices of pairs (d, d) also the axis `other`. With all measures, their
        first axis is `measure`, and the indices of measures that the method does not support are NaN. A folder of
        results also gets the indices, for the report.
        """
        import xarray

        results = self.study.of_plan(self.study.plan.with_values(values)).run(out, **self.of_run)
        for sentence in warnings_in(results) if self.warns else ():
            warnings.warn(sentence, SimulationWarning, stacklevel=3)
        found = {}
        for name in self.measures:
            measured = results[name].values
            reason = self._reason(name, measured)
            if not reason:
                found[name] = analyzed(measured)
            elif self.measure is not None or len(self.measures) == 1:
                raise StudyError(reason)
            else:
                warnings.warn(f"the indices of {name!r} are NaN, because {reason}", stacklevel=3)
        if not found:
            raise StudyError(f"no measure has indices, because {reason}")
        variables = {}
        parameters = list(self.study.plan.columns)
        for index, one in next(iter(found.values())).items():
            undefined = np.full(one.shape, np.nan)
            of_all = [found[name][index] if name in found else undefined for name in self.measures]
            dims = ("measure", "parameter", OF_PAIRS)[: 1 + one.ndim]
            variables[index] = (dims, np.array(of_all)) if self.measure is None else (dims[1:], of_all[0])
        coordinates: dict[str, Any] = {"parameter": parameters}
        if any(OF_PAIRS in dims for dims, _ in variables.values()):
            coordinates[OF_PAIRS] = parameters
        attributes: dict[str, Any] = {"method": self.method, "motions": len(values)}
        if self.measure is None:
            coordinates["measure"] = self.measures
        else:
            attributes["measure"] = self.measure
        if out is not None:
            self._write(Path(out), attributes, found)
        return xarray.Dataset(variables, coordinates, attributes)

    def _reason(self, name: str, measured: np.ndarray) -> str:
        """Return why the method does not support a measure with these values; empty if it does."""
        failed = int((~np.isfinite(measured)).sum())
        if failed:
            return (
                f"{failed} of {measured.size} samples failed or have no finite {name!r}, but the indices need all "
                "samples; narrow the distributions, or change the settings of simulate"
            )
        if self.method != "morris" and np.ptp(measured) <= ROUND_OFF * np.abs(measured).max():
            title = "Sobol indices" if self.method == "sobol" else "Shapley effects"
            return (
                f"{name!r} is {measured[0]:g} in all {measured.size} samples, but {title} are shares of its variance; "
                "choose another measure, or use morris()"
            )
        return ""

    def _write(self, folder: Path, attributes: dict[str, Any], found: Mapping[str, Mapping[str, np.ndarray]]) -> None:
        """Write the indices for the report, which loads neither xarray nor SciPy."""
        of_measures = {name: {index: of.tolist() for index, of in one.items()} for name, one in found.items()}
        written = attributes | {"parameters": list(self.study.plan.columns), "measures": of_measures}
        with whole_file(folder / INDICES) as partial:
            partial.write_text(json.dumps(written), encoding="utf-8")
