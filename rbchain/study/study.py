"""Study: what a user calls. It hands its plan to `run`, which computes the samples chunk by chunk."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..chain import Model
from ..errors import ModelError, StudyError
from ..misspelt import SuggestsAttributes
from ..real_arrays import finite_number, whole_number
from ..trajectory import Trajectory
from . import executors
from .compilation import compiled_in_parallel
from .description import checked, read_description
from .effects import effects_of
from .plan import Plan, plan_of
from .progress import bar_of
from .provenance import Log
from .run import MEMORY, chunk_size, run
from .statistics import Statistics
from .store import InMemory, Store, locked

if TYPE_CHECKING:
    import xarray

EXECUTORS = ("local", "processes", "dask")


class Study(SuggestsAttributes):
    """A Monte Carlo study: a model, what varies and how, what to simulate, and what to keep.

    Parameters
    ----------
    **keys
        What `study.toml` has: `model` (a Model, or a file), `samples`, `simulate` and optionally `name`, `seed`,
        `design`, `vary`, `correlate`, `drives`, `forces`, `events`, `outputs`, `measures`, `stop_when`; each as a dict,
        or as the object of `rbchain.study` that it stands for.

    Raises
    ------
    StudyError
        If the description is wrong, by itself or for this model: the message names the key.

    Examples
    --------
    Where a rod of uncertain mass and friction swings in half a second:

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
    >>> results = study.run()
    >>> results.height.shape, results.parameter.values.tolist()
    ((500,), ['mass_and_inertia[link1]', 'mass_and_inertia[link2]', 'friction[link1]'])
    """

    file: Path | None = None  # that it was read from

    def __init__(self, *, folder: str | Path = ".", **keys: Any) -> None:
        self._set_plan(plan_of(checked(keys), folder))

    @classmethod
    def read(cls, path: str | Path) -> Study:
        """The study that a TOML file describes; files that it names are beside it."""
        description = read_description(path)
        try:
            study = cls.of_plan(plan_of(description, Path(path).parent))
        except StudyError as error:
            raise StudyError(f"{path}: {error}") from None
        study.file = Path(path).resolve()
        return study

    @classmethod
    def of_results(cls, folder: str | Path) -> Study:
        """The study whose results a folder holds, read from the file that its last run was given.

        Raises
        ------
        StudyError
            If the folder holds no results, or the file of the study is not known or not found.
        """
        if not Store.exists(folder):
            raise StudyError(f"{folder}: there are no results to resume; `rbchain study run FILE` begins a study")
        file = Log(folder).study_file()
        if file is not None and file.is_file():
            return cls.read(file)
        missing = "its log names no file of the study" if file is None else f"there is no study file {file.resolve()}"
        raise StudyError(
            f"{folder}: {missing}. Run `rbchain study run FILE --out {folder}`, or `Study.run(out={str(folder)!r})` "
            "for a study from Python"
        )

    @classmethod
    def of_plan(cls, plan: Plan) -> Study:
        """The study of a plan that is made already."""
        study = cls.__new__(cls)
        cls._set_plan(study, plan)
        return study

    def _set_plan(self, plan: Plan) -> None:
        """Check that every dispersion reaches the kernels: then no error is left that shows without a sample."""
        self.plan, self.description, self.effects = plan, plan.description, effects_of(plan)

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
        memory: float = MEMORY,
        progress: Callable[[int, Statistics], object] | bool = False,
    ) -> xarray.Dataset:
        """Simulate all samples, or those that a folder of results lacks.

        Parameters
        ----------
        out : path, optional
            Folder of the results; in memory only, if not given. Where there are results of this very study in it, the
            run goes on with what is missing, and repairs damaged files.
        executor : "local", "processes" or "dask"
            In this process on all threads; in `workers` processes; or on the dask cluster of `scheduler`, an address or
            a `distributed.Client`. The results are the same to the last bit.
        chunk : int, optional
            Samples computed at once, if not as many as `memory` allows, up to 4096.
        memory : float, bytes
            What the chunks on their way may take, however many samples there are; statistics take up to 128 MB more.
        progress : bool or function(count, statistics)
            True shows a bar in a terminal or a notebook, and logs lines elsewhere. A function is called after
            each chunk with how many samples that were, and what is known so far.

        Returns
        -------
        xarray.Dataset
            Outputs by name along `sample`, with units; `attrs["statistics"]` has their statistics as JSON. `status`
            says which failed, and `parameters` what was drawn.

        Raises
        ------
        StudyError
            If the folder holds another study: the message names what differs. If it cannot be written.

        Warns
        -----
        UserWarning
            If files in the folder were damaged: the message names them. rbchain computes their samples again.
        """
        if progress is True:
            with bar_of(self.description) as advance:
                return self.run(
                    out,
                    executor=executor,
                    workers=workers,
                    scheduler=scheduler,
                    chunk=chunk,
                    memory=memory,
                    progress=advance,
                )
        plan, compute = self.plan, _executor(executor, workers, scheduler)
        memory = finite_number("memory", memory, StudyError, above=0.0)
        size = chunk_size(plan, memory)
        if chunk is not None:
            size = min(whole_number("chunk", chunk, StudyError, least=1), plan.description.samples)
        if out is None:
            in_memory = InMemory(plan, size)
            with compiled_in_parallel(plan):
                statistics = run(plan, in_memory, compute, progress or None)
            return in_memory.dataset(plan, statistics)
        try:
            Path(out).mkdir(parents=True, exist_ok=True)
            with locked(out):
                exists = Store.exists(out)
                store = Store.open(out, plan, self.effects) if exists else Store.create(out, plan, size, self.effects)
                log = Log(out)
                file = None if self.file is None else os.path.relpath(self.file, Path(out).resolve())
                log.write(event="started", samples=plan.description.samples, file=file)
                if store.repaired:
                    log.write(event="repaired", files=[str(damage) for damage in store.repaired])
                    warnings.warn(store.repair_message(), stacklevel=2)
                with compiled_in_parallel(plan):
                    statistics = run(plan, store, compute, progress or None)
                store.write_statistics(statistics)
                log.write(event="finished", samples=statistics.count, failures=statistics.failures)
        except OSError as error:
            raise StudyError(f"{out}: results cannot be written there ({error.strerror or error})") from error
        return store.dataset()

    def sample(self, k: int, save_at: npt.ArrayLike = 201) -> tuple[dict[str, float], Model, Trajectory]:
        """Sample k alone, with all of its motion: {name: what was drawn}, its Model and its Trajectory.

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
            model = plan.samples(drawn).build(only=0)
        except ModelError as error:
            raise StudyError(f"sample {k} has invalid parameters: {error}") from None
        # beside another sample, as in the study, if one of its neighbours is valid
        values = plan.draw(max(0, k - 4), min(samples, k + 5))
        beside = values[plan.valid(values) & (values != drawn).any(-1)][:1]
        _, motion = plan.simulate(np.concatenate([drawn, beside]), save_at)
        return dict(zip(plan.columns, drawn[0].tolist(), strict=True)), model, motion.of_sample(0)

    def motions(self, count: int = 30, first: int = 0, save_at: npt.ArrayLike = 101) -> Trajectory:
        """The motions of `count` samples (at least 2) from the `first` on: `study.motions().view()`.

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
            raise StudyError("the study has 1 sample; expected at least 2, or sample(0) for that one")
        count = min(whole_number("count", count, StudyError, least=2), samples - first)
        try:
            return self.plan.simulate(self.plan.draw(first, first + count), save_at)[1]
        except ModelError as error:
            raise StudyError(
                f"one of the samples {first} to {first + count - 1} has invalid parameters: {error}"
            ) from None

    def sensitivity(
        self,
        measure: str | None,
        method: str = "sobol",
        samples: int = 512,
        out: str | Path | None = None,
        **settings: Any,
    ) -> xarray.Dataset:
        """How much each number that is drawn matters to a measure: see `rbchain.study.sensitivity.indices`."""
        from .sensitivity import indices

        return indices(self, measure, method, samples, out, **settings)


def run_study(file: str | Path, out: str | Path, **settings: Any) -> xarray.Dataset:
    """Run the study that a file describes, or go on with it: `Study.read(file).run(out, ...)`."""
    return Study.read(file).run(out, **settings)


def _executor(name: str, workers: int | None, scheduler: Any) -> executors.Executor:
    if name not in EXECUTORS:
        raise StudyError(f"executor is {name!r}; expected one of {', '.join(EXECUTORS)}")
    if workers is not None:
        workers = whole_number("workers", workers, StudyError, least=1)
    if name == "processes":
        return partial(executors.processes, workers=workers)
    return partial(executors.dask, scheduler=scheduler) if name == "dask" else executors.local
