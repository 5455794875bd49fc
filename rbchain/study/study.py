"""Study: the interface for users. It passes its plan to `run`, which computes the samples chunk by chunk."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..common.misspelt import SuggestsAttributes, did_you_mean
from ..common.real_arrays import finite_number, whole_number
from ..errors import ModelError, StateError, StudyError
from ..facade.model import Model
from ..simulate.trajectory import Trajectory
from .analyse.linear_analysis import linear_analysis
from .analyse.survivors import survivors_in
from .describe.description import checked, read_description
from .describe.identity import changes_that_are_not_noticed
from .plan.effects import effects_of
from .plan.plan import Plan, plan_of
from .run import executors
from .run.chunks import MEMORY, chunk_size, run
from .run.compilation import compiled_in_parallel
from .run.replay import motion_again
from .run.statistics import Statistics
from .show.datasets import dataset_in, dataset_in_memory
from .show.progress import bar_of
from .store.opening import stored_results_in
from .store.provenance import Log
from .store.store import InMemory, Store, locked

if TYPE_CHECKING:
    import xarray

EXECUTORS = ("local", "processes", "dask")


class Study(SuggestsAttributes):
    """A Monte Carlo study: many samples of a model, with a distribution for each varied parameter.

    Parameters
    ----------
    folder : path
        Folder of the files that the description names (the working directory by default).
    **keys
        The keys of `study.toml`. Required: `model` (a Model, or a file), `samples`, `simulate`. Optional: `name`,
        `seed`, `design`, `vary`, `correlate`, `drives`, `forces`, `events`, `outputs`, `measures`, `stop_when`. Each
        value is a dict or the corresponding object of `rbchain.study`.

    Attributes
    ----------
    description : Description
        The checked keys.
    effects : dict of str
        The effect of each dispersion on the model, by the name of the dispersion.
    modules : dict of str
        Modules that the measures of the study import, and their files.

    Raises
    ------
    StudyError
        If the description is wrong or does not fit the model. The message names the key.

    Examples
    --------
    Two links of uncertain mass and friction swing for half a second:

    >>> import rbchain as rb
    >>> from rbchain.study import Normal, Uniform
    >>> study = rb.Study(
    ...     model=rb.Model.serial_chain(2),
    ...     samples=500,
    ...     vary=[
    ...         {"parameter": "mass_and_inertia", "how": "multiply", "distribution": Normal(mean=1, std=0.05)},
    ...         {"parameter": "friction", "targets": "link1", "distribution": Uniform(low=0, high=0.01)},
    ...     ],
    ...     simulate={"duration": 0.5, "method": "rk4", "step": 0.005},
    ...     measures=[{"name": "height", "quantity": "coordinate", "frame": "link2", "axis": "y"}],
    ... )
    >>> print(study.effects["friction"])
    friction of link1
    >>> results = study.run()
    >>> results.height.shape, results.parameter.values.tolist()
    ((500,), ['mass_and_inertia[link1]', 'mass_and_inertia[link2]', 'friction[link1]'])
    """

    file: Path | None = None  # from which the study was read

    def __init__(self, *, folder: str | Path = ".", **keys: Any) -> None:
        self._set_plan(plan_of(checked(keys), folder))

    @classmethod
    def read(cls, path: str | Path, *, code: bool = True) -> Study:
        """Read a study from a TOML file.

        Parameters
        ----------
        path : path
            The TOML file. The files that it names are relative to its folder.
        code : bool
            Whether the functions of measures may be imported: importing a module executes its code. Modules are found
            next to the file, and on Python's path. `Study.modules` lists them.

        Raises
        ------
        StudyError
            If the file is missing, invalid, or does not fit the model. The message names the line or the key.

        Examples
        --------
        >>> from pathlib import Path
        >>> import rbchain as rb
        >>> rb.Study.read(Path(rb.__file__).parents[1] / "examples" / "cable.toml")
        Study('a dropped cable', 1000 samples)
        """
        description = read_description(path)
        try:
            study = cls.of_plan(plan_of(description, Path(path).parent, code))
        except StudyError as error:
            raise StudyError(f"{path}: {error}") from None
        study.file = Path(path).resolve()
        return study

    @classmethod
    def of_results(cls, folder: str | Path, *, code: bool = True) -> Study:
        """Read the study whose results are in a folder, from the file that its last run used.

        Parameters
        ----------
        folder : path
            Folder of the results.
        code : bool
            As in `read`.

        Raises
        ------
        StudyError
            If the folder contains no results, or if the file of the study is unknown or missing.
        """
        if not Store.exists(folder):
            raise StudyError(
                f"{folder} contains no results to resume; expected the folder of an earlier run. To start a study, run "
                "`rbchain study run FILE --out FOLDER`"
            )
        file = Log(folder).study_file()
        if file is not None and file.is_file():
            return cls.read(file, code=code)
        missing = (
            "its log does not name the file of the study"
            if file is None
            else f"the file of the study, {file.resolve()}, does not exist"
        )
        raise StudyError(
            f"{folder}: {missing}. Run `rbchain study run FILE --out {folder}`, or `Study.run(out={str(folder)!r})` "
            "for a study from Python"
        )

    @classmethod
    def of_plan(cls, plan: Plan) -> Study:
        """Return the study of a plan."""
        study = cls.__new__(cls)
        cls._set_plan(study, plan)
        return study

    def _set_plan(self, plan: Plan) -> None:
        """Determine the effects of all dispersions, which reports the last errors that need no simulation."""
        self.plan, self.description, self.effects = plan, plan.description, effects_of(plan)
        self.modules = plan.modules

    def __repr__(self) -> str:
        return f"Study({self.description.name!r}, {self.description.samples} samples)"

    def run(
        self,
        out: str | Path | None = None,
        *,
        executor: str = "local",
        workers: int | None = None,
        scheduler: Any = None,
        chunk: int | None = None,
        memory: float | None = None,
        progress: Callable[[int, Statistics], object] | bool = False,
    ) -> xarray.Dataset:
        """Simulate all samples, or those that are missing in a folder of results.

        Parameters
        ----------
        out : path, optional
            Folder for the results. They stay in memory if it is not given. If the folder contains results of the same
            study, the run adds the missing samples and repairs damaged files.
        executor : "local", "processes" or "dask"
            Where to compute: in this process on all threads, in `workers` processes, or on the dask cluster of
            `scheduler`. The results are the same, bit for bit.
        workers : int, optional
            Number of processes of the executor "processes"; one for each core by default.
        scheduler : str or distributed.Client, optional
            The dask scheduler of the executor "dask", or its address.
        chunk : int, optional
            Samples computed at once; by default as many as `memory` allows, up to 4096.
        memory : float, bytes, optional
            Limit for the chunks in memory, in place of `chunk`; 1 GiB by default. Statistics need up to 128 MB more.
        progress : bool or function(count, statistics)
            True shows a progress bar in a terminal or a notebook, and logs lines elsewhere. A function is called after
            each chunk, with its number of samples and the statistics so far.

        Returns
        -------
        xarray.Dataset
            All outputs by name along `sample`, with units. `status` contains the `rb.Status` of each sample,
            `parameters` the drawn numbers, and `attrs["statistics"]` the statistics as JSON. If samples failed,
            `attrs["survivors"]` tells for how many samples the statistics hold, why the others failed, what to do, and
            on which parameters the failures depend. With `out`, `attrs["linear_analysis"]` contains gradients and
            control variates as JSON, if they were computed.

        Raises
        ------
        StudyError
            If the folder contains the results of another study (the message names the differences), or cannot be
            written.

        Warns
        -----
        UserWarning
            If files in the folder were damaged. The message names them. rbchain computes their samples again.

        Examples
        --------
        >>> import rbchain as rb
        >>> study = rb.Study(
        ...     model=rb.Model.serial_chain(1), samples=10, simulate={"duration": 1.0},
        ...     vary=[{"parameter": "q", "distribution": {"kind": "uniform", "low": "-20 deg", "high": "20 deg"}}],
        ... )
        >>> results = study.run()
        >>> results.q_final.shape, bool((results.status == rb.Status.DONE).all())
        ((10, 1), True)
        """
        settings: dict[str, Any] = {"executor": executor, "workers": workers, "scheduler": scheduler}
        settings |= {"chunk": chunk, "memory": memory}
        if progress is True:
            with bar_of(self.description) as advance:
                return self.run(out, progress=advance, **settings)
        if out is not None:
            run_into(self, out, progress=progress or None, **settings)
            return self._of_this_study(dataset_in(Path(out)))
        compute, size = _executor(executor, workers, scheduler), _chunk_size(self.plan, chunk, memory)
        store = InMemory(self.plan, size)
        with compiled_in_parallel(self.plan):
            statistics = run(self.plan, store, compute, progress or None)
        return self._of_this_study(dataset_in_memory(store, self.plan, statistics))

    def _of_this_study(self, results: xarray.Dataset) -> xarray.Dataset:
        results.rbchain.study = self
        return results

    def sample(self, k: int, save_at: npt.ArrayLike | None = None) -> tuple[dict[str, float], Model, Trajectory]:
        """Simulate sample k again. Its motion is the motion in the study, bit for bit.

        Parameters
        ----------
        k : int
            Number of the sample, from 0.
        save_at : int or (m,) array, s, optional
            Saved times, as for `Model.simulate`. The default is at least 201 times, which include the times of the
            study. It is the times of the study if more times would change the steps, and so the motion.

        Returns
        -------
        drawn : dict of float
            The drawn numbers by name.
        model : Model
        trajectory : Trajectory

        Raises
        ------
        StudyError
            If there is no sample k, its parameters are invalid, or times in `save_at` would change its motion.

        Examples
        --------
        >>> import rbchain as rb
        >>> study = rb.Study(
        ...     model=rb.Model.serial_chain(1), samples=10, simulate={"duration": 1.0},
        ...     vary=[{"parameter": "q", "distribution": {"kind": "uniform", "low": "-20 deg", "high": "20 deg"}}],
        ... )
        >>> drawn, model, motion = study.sample(3)
        >>> motion.q.shape, bool(abs(drawn["q[link1]"]) < 0.35)
        ((201, 1), True)
        """
        samples, plan = self.description.samples, self.plan
        k = whole_number("sample", k, StudyError, least=0, most=samples - 1)
        drawn = plan.draw(k, k + 1)
        try:
            model = plan.samples(drawn, np.array([k])).build(only=0)
            # together with a valid neighbour, because a batch of one sample runs other machine code than the study
            lowest, highest = max(0, k - 4), min(samples, k + 5)
            values = plan.draw(lowest, highest)
            others = np.flatnonzero(plan.valid(values) & (np.arange(lowest, highest) != k))
            differing = others[(values[others] != drawn).any(-1)]
            beside = np.concatenate([differing, others])[:1]
            numbers = np.concatenate([[k], lowest + beside])
            motion = motion_again(plan, np.concatenate([drawn, values[beside]]), numbers, save_at, 200)
        except (ModelError, StateError) as error:
            raise StudyError(f"sample {k} has invalid parameters: {error}") from None
        return dict(zip(plan.columns, drawn[0].tolist(), strict=True)), model, motion.of_sample(0)

    def motions(self, count: int = 30, first: int = 0, save_at: npt.ArrayLike | None = None) -> Trajectory:
        """Simulate some samples again, for example to show them with `study.motions().view()`.

        Parameters
        ----------
        count : int
            Number of samples, at least 2.
        first : int
            Number of the first sample.
        save_at : int or (m,) array, s, optional
            Saved times. The default is at least 101 times, as for `sample`.

        Returns
        -------
        Trajectory

        Raises
        ------
        StudyError
            If one of the samples has invalid parameters, or times in `save_at` would change the motions.

        Examples
        --------
        >>> import rbchain as rb
        >>> study = rb.Study(
        ...     model=rb.Model.serial_chain(1), samples=10, simulate={"duration": 1.0},
        ...     vary=[{"parameter": "q", "distribution": {"kind": "uniform", "low": "-20 deg", "high": "20 deg"}}],
        ... )
        >>> study.motions(4).q.shape
        (4, 101, 1)
        """
        samples = self.description.samples
        first = whole_number("first", first, StudyError, least=0, most=max(0, samples - 2))
        if samples < 2:
            raise StudyError("the study has 1 sample, but motions() needs at least 2; use sample(0) instead")
        count = min(whole_number("count", count, StudyError, least=2), samples - first)
        try:
            drawn, numbers = self.plan.draw(first, first + count), np.arange(first, first + count)
            return motion_again(self.plan, drawn, numbers, save_at, 100)
        except (ModelError, StateError) as error:
            raise StudyError(
                f"one of the samples {first} to {first + count - 1} has invalid parameters: {error}. Choose other "
                "samples by first and count"
            ) from None

    def sensitivity(
        self,
        measure: str | None,
        method: str = "sobol",
        samples: int = 512,
        out: str | Path | None = None,
        **settings: Any,
    ) -> xarray.Dataset:
        """Compute the sensitivity of a measure to each drawn number.

        Parameters
        ----------
        measure : str
            Name of the measure.
        method : "sobol" or "morris"
            Indices of Sobol, or elementary effects of Morris.
        samples : int
            Size of the design: d drawn numbers need samples * (d + 2) motions for "sobol", samples * (d + 1) for
            "morris". Use a power of 2 for "sobol".
        out : path, optional
            Folder for the results of the motions. An interrupted run can be resumed from it.
        **settings
            As for `Study.run`.

        Returns
        -------
        xarray.Dataset
            Along `parameter`. For "sobol" the first-order indices "S1" and the total indices "ST" (Saltelli 2010, with
            Jansen's estimator of the total index), and the half widths "S1_conf" and "ST_conf" of their 95 % intervals.
            For "morris" "mu", "mu_star", "sigma" and "mu_star_conf", in the unit of the measure per range of the
            parameter.

        Raises
        ------
        StudyError
            If the draws are not independent, or if samples fail.

        Examples
        --------
        >>> import rbchain as rb
        >>> study = rb.Study(
        ...     model=rb.Model.serial_chain(1), samples=50, simulate={"duration": 0.1},
        ...     vary=[{"parameter": "q", "distribution": {"kind": "uniform", "low": -0.1, "high": 0.1}}],
        ...     measures=[{"name": "angle", "quantity": "position", "joint": "link1"}],
        ... )
        >>> study.sensitivity("angle", "morris", samples=8).parameter.values.tolist()
        ['q[link1]']
        """
        from .analyse.sensitivity import indices

        of_run = _checked_settings("Study.sensitivity", settings)

        def run(plan: Plan) -> xarray.Dataset:
            return self.of_plan(plan).run(out, **of_run)

        return indices(self.plan, measure, method, samples, run)

    def gradient(self, measure: str | None = None) -> xarray.Dataset:
        """Compute the derivatives of measures by the drawn numbers, at the means of these numbers.

        One batch of 4 p + 1 motions for p drawn numbers gives the derivatives of all measures: central differences
        with steps of 1/64 and 1/32 of the standard deviations, and Richardson's extrapolation. The means and standard
        deviations of the drawn numbers follow from their distributions.

        Parameters
        ----------
        measure : str, optional
            Name of a measure; all measures by default.

        Returns
        -------
        xarray.Dataset
            Along `measure` and `parameter`: `gradient`, an estimate of its error (`error`), and `contribution`, the
            absolute change of the measure for one standard deviation of the parameter. Along `measure`: `value` at the
            means, and `first_order_std`, the standard deviation of a linear measure with this gradient. Along
            `parameter`: `mean` and `std`. The coordinates `units`, `parameter_units` and `gradient_units` hold the
            units. A unit is empty if it is not known.

        Raises
        ------
        StudyError
            If one of the samples fails, if a mean or standard deviation is unknown or infinite, if the draws come from
            a table, or if the study has noise.

        Notes
        -----
        `error` estimates the truncation error of a central difference, half of the jump of the slope at the means, and
        round-off. If it is large, the measure is not smooth, or the tolerances of `simulate` are too coarse.
        `gradient` is NaN where a measure is not finite near the means.

        The variance of first order is g C g for the gradient g and the covariance C of the drawn numbers. It is NaN if
        correlated numbers are not normally distributed.

        Examples
        --------
        >>> import rbchain as rb
        >>> study = rb.Study(
        ...     model=rb.Model.serial_chain(1, gravity=(0, 0, 0)), samples=50, simulate={"duration": 2.0},
        ...     vary=[{"parameter": "qd", "distribution": {"kind": "normal", "std": 0.1}}],
        ...     measures=[{"name": "angle", "quantity": "position", "joint": "link1"}],
        ... )
        >>> found = study.gradient("angle")
        >>> found.gradient.values.round(6).tolist(), found.gradient_units.values.tolist()
        ([2.0], ['rad/(rad/s)'])
        >>> round(found.first_order_std.item(), 6)
        0.2
        """
        from .analyse.gradients import gradients

        return gradients(self.plan, measure)

    def control_variates(self, results: xarray.Dataset, measure: str | None = None) -> xarray.Dataset:
        """Estimate the means of measures with less variance, from the known means of the drawn numbers.

        A linear regression on the drawn numbers explains a part of the variance of a measure. Because the means of
        these numbers are known, this part does not contribute to the error of the mean.

        Parameters
        ----------
        results : xarray.Dataset
            Results of this study.
        measure : str, optional
            Name of a measure; all measures by default.

        Returns
        -------
        xarray.Dataset
            Along `measure`: the mean and the half width `half_width` of its 95 % interval, `plain_mean` and
            `plain_half_width` without control variates, and `factor`. A study without control variates needs `factor`
            times as many samples for the same error. `attrs["parameters"]` lists the numbers that were used.

        Raises
        ------
        StudyError
            If samples failed, if the samples are not independent (`design` is not "random"), if they are fewer than 10
            for each coefficient, or if the results belong to another study.

        Notes
        -----
        Numbers whose mean or standard deviation is unknown or infinite are not used. User-defined distributions and
        distributions such as Cauchy's have such numbers. SciPy gives the means of its distributions; rbchain uses them
        if they agree with the quantiles. Intervals are exact for normal numbers and asymptotic for others. A factor
        slightly below 1 means that the measure does not depend linearly on the numbers.

        The source is Lavenberg and Welch (1981), "A perspective on the use of control variables to increase the
        efficiency of Monte Carlo simulations".

        Examples
        --------
        >>> import rbchain as rb
        >>> study = rb.Study(
        ...     model=rb.Model.serial_chain(1), samples=50, simulate={"duration": 0.1},
        ...     vary=[{"parameter": "q", "distribution": {"kind": "uniform", "low": -0.1, "high": 0.1}}],
        ...     measures=[{"name": "angle", "quantity": "position", "joint": "link1"}],
        ... )
        >>> found = study.control_variates(study.run(), "angle")
        >>> bool(found.half_width < 0.1 * found.plain_half_width), bool(found.factor > 100)
        (True, True)
        """
        from .analyse.control_variates import control_variates

        return control_variates(self.plan, results, measure)


def run_study(file: str | Path, out: str | Path, **settings: Any) -> xarray.Dataset:
    """Run or resume the study in a TOML file: `Study.read(file).run(out, ...)`.

    Parameters
    ----------
    file : path
        TOML file of the study.
    out : path
        Folder for the results.
    **settings
        As for `Study.run`.

    Returns
    -------
    xarray.Dataset
        As from `Study.run`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import rbchain as rb
    >>> lines = [
    ...     "model = { serial_chain = { n = 1 } }",
    ...     "samples = 10",
    ...     "simulate = { duration = 1.0 }",
    ...     'vary = [{ parameter = "q", distribution = { kind = "normal", std = "5 deg" } }]',
    ... ]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "study.toml").write_text("\\n".join(lines))
    ...     rb.run_study(Path(folder, "study.toml"), Path(folder, "results")).sizes["sample"]
    10
    """
    return Study.read(file).run(out, **_checked_settings("run_study", settings))


def _checked_settings(function: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings that a function passes to `Study.run`. Raises a StudyError if `Study.run` has no such setting."""
    known = [name for name in inspect.signature(Study.run).parameters if name not in ("self", "out")]
    for name in settings:
        if name not in known:
            raise StudyError(
                f"{function} has no argument {name!r}; expected one of {', '.join(known)}{did_you_mean(name, known)}"
            )
    return settings


def run_into(
    study: Study,
    out: str | Path,
    *,
    executor: str = "local",
    workers: int | None = None,
    scheduler: Any = None,
    chunk: int | None = None,
    memory: float | None = None,
    progress: Callable[[int, Statistics], object] | None = None,
) -> None:
    """Simulate all samples, or those that are missing in a folder of results: `Study.run` without opening the results.

    `Study.run` describes the arguments.
    """
    plan, compute = study.plan, _executor(executor, workers, scheduler)
    size = _chunk_size(plan, chunk, memory)
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
        with locked(out):
            exists = Store.exists(out)
            store = Store.open(out, plan, study.effects) if exists else Store.create(out, plan, size, study.effects)
            log = Log(out)
            file = None if study.file is None else os.path.relpath(study.file, Path(out).resolve())
            for sentence in changes_that_are_not_noticed(plan.as_json()):
                warnings.warn(sentence, stacklevel=3)
            log.write(event="started", samples=plan.description.samples, file=file)
            if store.repaired:
                log.write(event="repaired", files=[str(damage) for damage in store.repaired])
                warnings.warn(store.repair_message(), stacklevel=3)
            with compiled_in_parallel(plan):
                statistics = run(plan, store, compute, progress)
            store.write_statistics(statistics.as_json(), survivors_in(stored_results_in(out)))
            log.write(event="finished", samples=statistics.count, failures=statistics.failures)
            # last, so that the study is finished even if a motion at the means ends the process
            if store.repaired or not store.has_linear_analysis:
                store.write_linear_analysis(linear_analysis(plan, store, compute))
    except OSError as error:
        raise StudyError(
            f"{out}: the results cannot be written into this folder ({error.strerror or error}); choose another folder"
        ) from error


def _chunk_size(plan: Plan, chunk: int | None, memory: float | None) -> int:
    """Return the chunk size of a run: `chunk`, or as many samples as the memory allows."""
    if chunk is None:
        return chunk_size(plan, finite_number("memory", MEMORY if memory is None else memory, StudyError, above=0.0))
    if memory is not None:
        raise StudyError(
            f"chunk is {chunk!r} and memory is {memory!r}, which both determine how many samples are computed at once; "
            "expected one of them"
        )
    return min(whole_number("chunk", chunk, StudyError, least=1), plan.description.samples)


def _executor(name: str, workers: int | None, scheduler: Any) -> executors.Executor:
    if name not in EXECUTORS:
        raise StudyError(f"executor is {name!r}; expected one of {', '.join(EXECUTORS)}")
    if workers is not None:
        workers = whole_number("workers", workers, StudyError, least=1)
    for argument, given, user in (("workers", workers, "processes"), ("scheduler", scheduler, "dask")):
        if given is not None and name != user:
            raise StudyError(
                f"{argument} is {given!r}, but executor {name!r} does not use it; remove {argument}, or choose "
                f"executor={user!r}"
            )
    if name == "processes":
        return partial(executors.processes, workers=workers)
    return partial(executors.dask, scheduler=scheduler) if name == "dask" else executors.local
