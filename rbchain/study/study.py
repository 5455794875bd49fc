"""Study: the interface for users. It passes its plan to `run`, which computes the samples chunk by chunk."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..common.failures import OnFailure, checked_on_failure
from ..common.misspelt import ClosedAttributes, did_you_mean
from ..errors import SimulationWarning, StudyError
from .analyse import control_variates as controls, gradients
from .describe.description import Description, checked, read_description
from .plan.effects import effects_of
from .plan.given_inputs import given_inputs
from .plan.plan import Plan, plan_of
from .run import executors, replay
from .run.chunks import chosen_chunk_size, run
from .run.compilation import compiled_in_parallel
from .run.statistics import Statistics
from .run_into import run_into
from .show.datasets import dataset_in, dataset_in_memory
from .show.progress import bar_of
from .store.provenance import Log
from .store.store import InMemory, Store

if TYPE_CHECKING:
    import xarray


class Study(ClosedAttributes):
    """A Monte Carlo study: many samples of a model, with a distribution for each varied parameter.

    Parameters
    ----------
    folder : path
        Folder of the files that the description names (the working directory by default).
    **keys
        The keys of `study.toml`. Required: `model` (a Model, or a file), `samples`, `simulate`. Optional: `name`,
        `seed`, `design`, `vary`, `correlate`, `drives`, `forces`, `events`, `outputs`, `measures`, `stop_when`. Each
        value is a dict or the corresponding object of `rbchain.study`. Without `drives`, the drives of the model act;
        with `drives=[]`, none does.

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
    plan: Plan
    description: Description
    effects: dict[str, str]
    modules: dict[str, str]

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
        on_failure: OnFailure = "warn",
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
        on_failure : "warn", "raise" or "ignore"
            If samples fail, warn with a SimulationWarning, raise a StudyError, or neither. All results are stored in
            each case.

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
            written, or if samples fail and `on_failure` is "raise".

        Warns
        -----
        SimulationWarning
            If samples fail. The message is `attrs["survivors"]`.
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
                return self.run(out, progress=advance, on_failure=on_failure, **settings)
        checked_on_failure(on_failure, StudyError)
        if out is not None:
            run_into(self, out, progress=progress or None, **settings)
            results = dataset_in(Path(out))
        else:
            compute = executors.executor_of(executor, workers, scheduler)
            store = InMemory(self.plan, chosen_chunk_size(self.plan, chunk, memory))
            with compiled_in_parallel(self.plan):
                statistics = run(self.plan, store, compute, progress or None)
            results = dataset_in_memory(store, self.plan, statistics)
        results.rbchain.study = self
        survivors = results.attrs.get("survivors")
        if survivors and on_failure == "raise":
            raise StudyError(survivors)
        if survivors and on_failure == "warn":
            warnings.warn(survivors, SimulationWarning, stacklevel=2)
        return results

    @property
    def inputs(self) -> dict[str, str]:
        """The drawn numbers of a sample, in their order: {name: unit}.

        The unit is "1" for factors and coefficients, and empty if none is known.

        Examples
        --------
        >>> import rbchain as rb
        >>> study = rb.Study(
        ...     model=rb.Model.serial_chain(1), samples=10, simulate={"duration": 1.0},
        ...     vary=[{"parameter": "q", "distribution": {"kind": "uniform", "low": "-20 deg", "high": "20 deg"}}],
        ... )
        >>> study.inputs
        {'q[link1]': 'rad'}
        """
        return dict(zip(self.plan.columns, self.plan.units, strict=True))

    def evaluate(self, inputs: npt.ArrayLike | xarray.DataArray, **settings: Any) -> xarray.Dataset:
        """Simulate samples with given numbers in place of drawn ones, for optimisers and other programs.

        Parameters
        ----------
        inputs : (m, n) array, or xarray.DataArray or pandas.DataFrame with the names of the inputs
            The numbers of `Study.inputs` for each sample, in their units. Columns with names can be in any order.
        **settings
            As for `Study.run`, without `out`.

        Returns
        -------
        xarray.Dataset
            As from `Study.run`. Sample k has the noise of sample k of the study.

        Raises
        ------
        StudyError
            If the inputs have another shape or other names, or as for `Study.run`.

        Examples
        --------
        The largest kinetic energy of a rod that falls from three angles q is m g l (1 + sin(q)) / 2 = (1 + sin(q)) / 2:

        >>> import numpy as np, rbchain as rb
        >>> study = rb.Study(
        ...     model=rb.Model.serial_chain(1, length=1.0), samples=10, simulate={"duration": 1.0},
        ...     vary=[{"parameter": "q", "distribution": {"kind": "uniform", "low": -1.5, "high": 1.5}}],
        ...     measures=[{"name": "energy", "quantity": "kinetic_energy", "over": "max"}],
        ... )
        >>> study.evaluate([[-0.5], [-1.0]]).energy.values.round(5).tolist()
        [0.26029, 0.07926]
        """
        values = given_inputs(inputs, self.plan)
        run_settings = _checked_settings("Study.evaluate", settings)
        if len(values) != 1:
            return self.of_plan(self.plan.with_values(values)).run(**run_settings)
        # one sample alone would have other machine code, and its results would differ by round-off
        return self.of_plan(self.plan.with_values(np.repeat(values, 2, 0))).run(**run_settings).isel(sample=slice(1))

    sample = replay.sample
    motions = replay.motions
    gradient = gradients.gradient
    control_variates = controls.control_variates

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

        of_run = {"on_failure": "ignore"} | _checked_settings("Study.sensitivity", settings)
        return indices(self.plan, measure, method, samples, lambda plan: self.of_plan(plan).run(out, **of_run))


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
