"""The accessor `rbchain` of xarray datasets: `results.rbchain.plot(...)`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import xarray

from ...common.public_names import HasPublicNames
from ...errors import StudyError
from . import exports
from .pictures import GROUPS, draw_bands, draw_distribution, draw_influences, measures_of

if TYPE_CHECKING:
    from ...plots.figure import Figure
    from ..study import Study


#: Statistics of a measure in a summary.
SUMMARIZED = ("count", "mean", "variance", "min", "max")


@xarray.register_dataset_accessor("rbchain")
class Results(HasPublicNames):
    """The accessor `rbchain` of an xarray Dataset with the results of a study.

    Attributes
    ----------
    study : Study
        The study that computed the results. For results from a folder, it is read from the file that the last run used,
        or from the files that a run of a study from Python has written into the folder. This imports the functions that
        the file specifies. Access raises a StudyError if the results are a copy or were changed, if the file is
        missing, or if a study from Python cannot be stored in a file.

    Notes
    -----
    `summary`, `plot`, `gradient` and `control_variates` use the results. Sobol and Morris indices need other samples:
    use `Study.sobol_indices` and `Study.morris`, for example `results.rbchain.study.sobol_indices(measure)`. The
    methods `sobol_indices` and `morris` of this accessor are shorthand for them.
    """

    internal_names: ClassVar[tuple[str, ...]] = ("reopen",)

    def __init__(self, results: xarray.Dataset) -> None:
        self._results = results
        self.reopen: Callable[[], Study] | None = None
        self._study: Study | None = None

    def __getstate__(self) -> dict[str, Any]:
        # functions of a study may be impossible to pickle
        return {"_results": self._results, "reopen": None, "_study": None}

    @property
    def study(self) -> Study:
        if self._study is None:
            if self.reopen is None:
                raise StudyError(
                    "these results do not contain their study, because they are a copy; expected the results of "
                    "Study.run or rbchain.load_results. Set results.rbchain.study to the study"
                )
            self._study = self.reopen()
        return self._study

    @study.setter
    def study(self, study: Study) -> None:
        self._study = study

    def summary(self) -> xarray.Dataset:
        """Return mean, standard deviation and quantiles of each measure over the samples that did not fail.

        Returns
        -------
        xarray.Dataset
            Along `measure`: "count", "mean", "std", "min" and "max", and "quantile" at the levels of `level`. `units`
            is a coordinate. `attrs` contain the numbers of samples and of failures, and the text `survivors` if samples
            failed.

        Raises
        ------
        StudyError
            If the study is not finished, or has no measures.

        Examples
        --------
        >>> import rbchain as rb
        >>> study = rb.Study(
        ...     rb.Model.serial_chain(1), samples=50, simulate=rb.Simulation(0.1),
        ...     vary={"*.q": rb.Uniform(-0.1, 0.1)},
        ...     measures=[rb.Measure("lowest", "coordinate", frame="link1", axis="y", over="min")],
        ... )
        >>> study.run().rbchain.summary().sel(measure="lowest")["count"].item()
        50
        """
        statistics, measures = json.loads(self._results.attrs.get("statistics", "null")), measures_of(self._results)
        if statistics is None:
            raise StudyError("the study is not finished; run it again to resume it")
        if not measures:
            raise StudyError("the study has no measures, so it has no summary; add measures")
        of_measures = [statistics["of"][name] for name in measures]
        numbers = {key: [np.nan if of[key] is None else of[key] for of in of_measures] for key in SUMMARIZED}
        variance = np.array(numbers.pop("variance"), float)
        found = {key: ("measure", np.array(values)) for key, values in numbers.items()}
        found["std"] = ("measure", np.sqrt(variance))
        quantiles = np.array([of["quantiles"] for of in of_measures], float)
        units = [self._results[name].attrs.get("units", "") for name in measures]
        coordinates = {"measure": measures, "level": statistics["levels"], "units": ("measure", units)}
        return xarray.Dataset(
            found | {"quantile": (("measure", "level"), quantiles)},
            coordinates,
            {"samples": statistics["samples"], "failures": statistics["failures"]} | self._of_survivors(),
        )

    def _of_survivors(self) -> dict[str, Any]:
        """Return the attribute which states that the values describe only samples that did not fail, if some failed."""
        return {name: text for name, text in self._results.attrs.items() if name == "survivors"}

    def gradient(self, measure: str | None = None) -> xarray.Dataset:
        """Compute the derivatives of measures with respect to the random inputs, at the means of these inputs.

        Parameters
        ----------
        measure : str, optional
            Name of a measure; all measures by default.

        Returns
        -------
        xarray.Dataset
            As from `Study.gradient`. In addition `monte_carlo_std`, the standard deviation of the measure among the
            samples that did not fail, to compare with `first_order_std`.

        Raises
        ------
        StudyError
            As for `Study.gradient`, and if the study is not known.

        Examples
        --------
        >>> import rbchain as rb
        >>> study = rb.Study(
        ...     rb.Model.serial_chain(1, gravity=(0, 0, 0)), samples=200, simulate=rb.Simulation(2.0),
        ...     vary={"*.qd": rb.Normal(std=0.1)},
        ...     measures=[rb.Measure("angle", "position", joint="link1")],
        ... )
        >>> found = study.run().rbchain.gradient("angle")
        >>> bool(abs(found.monte_carlo_std / found.first_order_std - 1) < 0.2)
        True
        """
        found = self.study.gradient(measure)
        stds = [self._results[name].std(ddof=1).item() for name in np.ravel(found.measure.values)]
        found = found.assign(monte_carlo_std=(found.measure.dims, np.reshape(stds, found.measure.shape)))
        return found.assign_attrs(self._of_survivors())

    def control_variates(self, measure: str | None = None) -> xarray.Dataset:
        """Estimate the means of measures with less variance, from the known means of the random inputs.

        `Study.control_variates` describes the result.
        """
        return self.study.control_variates(self._results, measure)

    def sobol_indices(self, measure: str | None, **settings: Any) -> xarray.Dataset:
        """Compute the Sobol indices of a measure: shorthand for `study.sobol_indices`."""
        return self.study.sobol_indices(measure, **settings)

    def morris(self, measure: str | None, **settings: Any) -> xarray.Dataset:
        """Compute the elementary effects of a measure: shorthand for `study.morris`."""
        return self.study.morris(measure, **settings)

    def to_csv(self, path: str | Path) -> None:
        """Write a table with a row for each sample, for spreadsheets and other programs.

        The columns are the number of the sample, the name of its status, the random inputs, and all outputs without an
        axis of times, in the order of the description. Their names contain the units: "link1.mass (kg)".

        Parameters
        ----------
        path : path
            The file.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import rbchain as rb
        >>> study = rb.Study(
        ...     rb.Model.serial_chain(1), samples=2, simulate=rb.Simulation(0.1),
        ...     vary={"*.q": rb.Uniform(-0.1, 0.1)},
        ...     measures=[rb.Measure("energy", "kinetic_energy", over="max")],
        ... )
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study.run().rbchain.to_csv(f"{folder}/results.csv")
        ...     print(pathlib.Path(f"{folder}/results.csv").read_text().splitlines()[0])
        sample,status,link1.q (rad),q_final link1 (rad),qd_final link1 (rad/s),energy (J),end_time (s)
        """
        exports.to_csv(self._results, path)

    def to_mat(self, path: str | Path) -> None:
        """Write a file for MATLAB.

        Parameters
        ----------
        path : path
            The file. It contains `measures` (samples, measures) with the cell arrays `measure_names` and
            `measure_units`, `parameters` (samples, columns) with `parameter_names` and `parameter_units`, the integers
            `status` of `rb.Status` with `status_names`, and the other outputs by their names.

        Examples
        --------
        >>> import tempfile
        >>> import rbchain as rb
        >>> from scipy.io import loadmat
        >>> study = rb.Study(
        ...     rb.Model.serial_chain(1), samples=2, simulate=rb.Simulation(0.1),
        ...     vary={"*.q": rb.Uniform(-0.1, 0.1)},
        ...     measures=[rb.Measure("energy", "kinetic_energy", over="max")],
        ... )
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study.run().rbchain.to_mat(f"{folder}/results.mat")
        ...     found = loadmat(f"{folder}/results.mat", simplify_cells=True)
        >>> found["measures"].shape, found["measure_names"], found["measure_units"]
        ((2,), 'energy', 'J')
        """
        exports.to_mat(self._results, path)

    def plot(self, name: str | None = None, *, influences: bool = False) -> Figure:
        """Plot one output.

        Parameters
        ----------
        name : str, optional
            Name of a measure, to plot its distribution with median and quantiles. Or "q" or "qd", if the trajectories
            were stored, to plot median and quantile bands over time. The first measure by default.
        influences : bool
            Whether to plot the measure against the parameters that explain most of its variance, instead of its
            distribution.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        StudyError
            If there is no such output, or too few different values.

        Examples
        --------
        >>> import rbchain as rb
        >>> study = rb.Study(
        ...     rb.Model.serial_chain(1), samples=50, simulate=rb.Simulation(0.1),
        ...     vary={"*.q": rb.Uniform(-0.1, 0.1)},
        ...     measures=[rb.Measure("lowest", "coordinate", frame="link1", axis="y", over="min")],
        ... )
        >>> study.run().rbchain.plot("lowest").axes[0].get_ylabel()
        'samples'
        """
        measures = measures_of(self._results)
        motions = [n for n in ("q", "qd") if n in self._results and "time" in self._results[n].dims]
        name = name or next(iter([*measures, *motions]), None)
        statistics = json.loads(self._results.attrs.get("statistics", "null"))
        figure = None
        if name in measures:
            draw = (self._results, name)
            figure = draw_influences(*draw) if influences else draw_distribution(*draw, statistics)
        elif name in motions and statistics:
            figure = draw_bands(self._results, name, statistics)
        if figure is None:
            raise StudyError(_why_nothing_to_plot(name, measures, motions, influences))
        return figure


def _why_nothing_to_plot(name: str | None, measures: list[str], motions: list[str], influences: bool) -> str:
    if name is None:
        return "the study has no output to plot; add measures, or set motion = true in outputs"
    if name in motions:
        return f"{name!r} can be plotted when the study is finished; run it again to resume it"
    if name not in measures:
        return f"name is {name!r}; expected one of {[*measures, *motions]}"
    if influences:
        return (
            f"the influences on {name!r} cannot be plotted; expected at least {2 * GROUPS} samples, and a parameter "
            "that explains more than 0.5 % of the variance"
        )
    return f"{name!r} cannot be plotted; expected samples with a finite value"
