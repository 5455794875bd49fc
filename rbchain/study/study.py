"""Study: the interface for users. It passes its plan to `run`, which computes the samples chunk by chunk."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ..acting.events import Event
from ..acting.sampled import Drive
from ..acting.wrenches import Force
from ..common.calls import ExplainsCalls, explains_calls
from ..common.failures import OnFailure, checked_on_failure
from ..common.misspelled import ClosedAttributes, NamesClassMethods
from ..common.real_arrays import excerpt
from ..errors import SimulationWarning, StudyError
from ..facade.model import Model
from . import merge_into as merging
from .analyze import control_variates as controls, gradients, sensitivity, shapley
from .analyze.survivors import warnings_in
from .describe.correlations import Correlation
from .describe.description import Description, Outputs, Simulation, StopWhen, read_description
from .describe.designs import Design, DesignName, SupportsArray
from .describe.dispersions import Dispersion
from .describe.distribution import Distribution
from .describe.measures import Measure
from .describe.model_source import ModelSource
from .plan.effects import effects_of
from .plan.episodes import EpisodesOfStudy
from .plan.inputs import Inputs
from .plan.plan import Plan, plan_of
from .rare import probability as rare
from .run import given_samples, replay
from .run.chunks import run
from .run.compilation import compiled_in_parallel
from .run.executors import ExecutorName
from .run.parts import Part
from .run.resources import Resources
from .run.statistics import Statistics
from .run_into import run_into
from .show.datasets import dataset_in, dataset_in_memory
from .show.progress import bar_of
from .store.store import InMemory

if TYPE_CHECKING:
    import xarray


class Study(ExplainsCalls, ClosedAttributes, metaclass=NamesClassMethods):
    """A Monte Carlo study: simulations of many samples of a model, with a distribution for each varied parameter.

    Parameters
    ----------
    model : Model, or path of a file, or dict
        The mechanism. A dict contains the keys of `ModelSource`.
    samples : int
        Number of samples.
    simulate : Simulation or dict
        The simulation of each sample.
    vary : dict
        A `Dispersion` or a distribution for each path of parameters, such as
        `{"link[2-6].mass": rb.Dispersion(rb.Normal(1, 0.05), how="multiply"), "elbow.kp": rb.Uniform(8, 12)}`.
        `Dispersion` describes the paths.
    design : str, design or array
        "random" (default), "latin_hypercube", "sobol", "factorial", or an object such as `rb.study.Factorial(3)`. Or an
        array with a row for each sample and a column for each random input, as for `evaluate` (`GivenValues`).
    seed : int
        Seed of the random numbers.
    correlate : sequence of Correlation
        Correlations of random inputs.
    drives : sequence of drives, optional
        By default, the drives of the model; `drives=[]` means none.
    forces, events : sequences
        As for `Model.simulate`.
    measures : sequence of Measure or dict
        Scalars to compute from the trajectory of each sample.
    outputs : Outputs or dict
        Results to store besides the measures.
    stop_when : StopWhen or dict, optional
        Rule to end the study early.
    name : str
        Name of the study in reports.
    folder : path
        Folder of the files in the description (the working directory by default).

    Attributes
    ----------
    description : Description
        The checked arguments.
    effects : dict of str
        The effect of each dispersion on the model, by its path.
    modules : dict of str
        Modules that the measures of the study import, and their files.

    Raises
    ------
    StudyError
        If the description is wrong or does not fit the model. The message contains the key.

    Examples
    --------
    Two links of uncertain mass and friction swing for half a second:

    >>> import rbchain as rb
    >>> study = rb.Study(
    ...     rb.Model.serial_chain(2),
    ...     samples=500,
    ...     vary={
    ...         "*.mass_and_inertia": rb.Dispersion(rb.Normal(1, 0.05), how="multiply"),
    ...         "link1.friction": rb.Uniform(0, 0.01),
    ...     },
    ...     simulate=rb.Simulation(0.5, method="rk4", step=0.005),
    ...     measures=[rb.Measure("height", "coordinate", frame="link2", axis="y")],
    ... )
    >>> print(study.effects["link1.friction"])
    friction of link1
    >>> results = study.run()
    >>> results.height.shape, results.parameter.values.tolist()
    ((500,), ['link1.mass_and_inertia', 'link2.mass_and_inertia', 'link1.friction'])
    """

    renamed_attributes: ClassVar[dict[str, str]] = {
        "sensitivity": "study.sobol_indices() or study.morris()",
        "of_results": "rb.load_results(folder).rbchain.study",
    }

    internal_names: ClassVar[tuple[str, ...]] = ("episodes", "file", "plan", "of_plan")
    file: Path | None = None  # from which the study was read
    plan: Plan
    episodes: EpisodesOfStudy
    description: Description
    effects: dict[str, str]
    modules: dict[str, str]

    def __init__(
        self,
        model: Model | ModelSource | str | Path | Mapping[str, Any],
        *,
        samples: int,
        simulate: Simulation | Mapping[str, Any],
        vary: Mapping[str, Dispersion | Distribution | Any] | None = None,
        design: DesignName | Design | Mapping[str, Any] | SupportsArray | Sequence[Sequence[float]] = "random",
        seed: int = 0,
        correlate: Sequence[Correlation | Mapping[str, Any]] = (),
        drives: Sequence[Drive] | None = None,
        forces: Sequence[Force] = (),
        events: Sequence[Event] = (),
        measures: Sequence[Measure | Mapping[str, Any]] = (),
        outputs: Outputs | Mapping[str, Any] | None = None,
        stop_when: StopWhen | Mapping[str, Any] | None = None,
        name: str = "study",
        folder: str | Path = ".",
    ) -> None:
        given: dict[str, Any] = {
            "name": name,
            "model": model,
            "samples": samples,
            "seed": seed,
            "design": design,
            "vary": {} if vary is None else vary,
            "correlate": correlate,
            "simulate": simulate,
            "drives": drives,
            "forces": forces,
            "events": events,
            "outputs": Outputs() if outputs is None else outputs,
            "measures": measures,
            "stop_when": stop_when,
        }
        self._set_plan(plan_of(Description(**given), folder))

    @classmethod
    def read(cls, path: str | Path, *, code: bool = True) -> Study:
        """Read a study from a TOML file.

        Parameters
        ----------
        path : path
            The TOML file. Paths in the file are relative to its folder.
        code : bool
            Whether the functions of measures may be imported: importing a module executes its code. Modules are found
            next to the file, and on Python's path. `Study.modules` lists them.

        Raises
        ------
        StudyError
            If the file is missing, invalid, or does not fit the model. The message contains the line or the key.

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
    def of_plan(cls, plan: Plan) -> Study:
        """Return the study of a plan."""
        study = cls.__new__(cls)
        cls._set_plan(study, plan)
        return study

    def _set_plan(self, plan: Plan) -> None:
        """Determine the effects of all dispersions, which reports the last errors that need no simulation."""
        self.plan, self.description, self.effects = plan, plan.description, effects_of(plan)
        self.modules, self.episodes = plan.modules, EpisodesOfStudy(plan)

    def __repr__(self) -> str:
        return f"Study({self.description.name!r}, {self.description.samples} samples)"

    @explains_calls(is_method=True)
    def run(
        self,
        out: str | Path | None = None,
        *,
        executor: ExecutorName = "local",
        workers: int | None = None,
        scheduler: Any = None,
        chunk: int | None = None,
        memory: float | None = None,
        part: Sequence[int] | None = None,
        progress: Callable[[int, Statistics], object] | bool = False,
        on_failure: OnFailure = "warn",
    ) -> xarray.Dataset:
        """Simulate all samples, or those that are missing in a folder of results.

        Parameters
        ----------
        out : path, optional
            Folder for the results. They stay in memory if it is not given. If the folder contains results of the same
            study, the run adds the missing samples and repairs damaged files. If its design is "random" or "sobol", the
            study may have more samples than these results; the results are then the same as the results of a new study.
        executor : "local", "processes" or "dask"
            Where to compute: in this process on all threads, in `workers` processes, or on the dask cluster of
            `scheduler`. The results are the same.
        workers : int, optional
            Number of processes of the executor "processes"; one for each core by default.
        scheduler : str or distributed.Client, optional
            The dask scheduler of the executor "dask", or its address.
        chunk : int, optional
            Samples computed at once; by default as many as `memory` allows, up to 4096.
        memory : float, bytes, optional
            Limit for the chunks in memory, in place of `chunk`; 1 GiB by default. Statistics need up to 128 MB more.
        part : (int, int), optional
            Number of a part of the study, counted from 1, and the number of parts: (3, 100) computes the third of 100
            parts into `out`, and returns its samples without statistics. `Study.merge` joins the parts.
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
            `parameters` the random inputs, and `attrs["statistics"]` the statistics as JSON. If samples failed,
            `attrs["survivors"]` states how many samples the statistics describe, why the others failed, what to do, and
            on which parameters the failures depend. With `out`, `attrs["linear_analysis"]` contains gradients and
            control variates as JSON, if they were computed.

        Raises
        ------
        StudyError
            If the folder contains the results of another study (the message lists the differences), or cannot be
            written, or if samples fail and `on_failure` is "raise".

        Warns
        -----
        SimulationWarning
            If samples fail. The message is `attrs["survivors"]`. Also if samples exceed position limits, have an
            unstable digital control loop, or have inexact impulses of contacts. `warnings` contains the sum of 1, 2 and
            4 for these in each sample, if the study can have them.
        UserWarning
            If files in the folder were damaged. The message lists them. rbchain computes their samples again.

        Examples
        --------
        >>> import rbchain as rb
        >>> study = rb.Study(
        ...     rb.Model.serial_chain(1), samples=10, simulate=rb.Simulation(1.0),
        ...     vary={"*.q": rb.Uniform("-20 deg", "20 deg")},
        ... )
        >>> results = study.run()
        >>> results.q_final.shape, bool((results.status == rb.Status.DONE).all())
        ((10, 1), True)
        """
        resources = Resources(executor, workers, scheduler, chunk, memory)
        chosen = None if part is None else Part.checked(part, self.plan)
        if progress is True:
            samples = self.description.samples if chosen is None else chosen.samples(self.plan)
            with bar_of(self.description.name, samples) as advance:
                return self.run(out, progress=advance, on_failure=on_failure, part=part, **resources._asdict())
        checked_on_failure(on_failure, StudyError)
        if out is not None:
            numbers = run_into(self, out, resources, progress=progress or None, part=chosen)
            results = dataset_in(Path(out))
            if chosen is not None:
                return results.isel(sample=slice(numbers.start, numbers.stop))
        elif chosen is not None:
            raise StudyError(
                f"part is {excerpt(part)}, but out is missing; expected a folder for the results of the part"
            )
        else:
            compute = resources.new_executor()
            store = InMemory(self.plan, resources.chunk_size(self.plan))
            with compiled_in_parallel(self.plan):
                statistics = run(self.plan, store, compute, progress or None)
            results = dataset_in_memory(store, self.plan, statistics)
        results.rbchain.study = self
        survivors = results.attrs.get("survivors")
        if survivors and on_failure == "raise":
            raise StudyError(survivors)
        if survivors and on_failure == "warn":
            warnings.warn(survivors, SimulationWarning, stacklevel=3)
        if on_failure != "ignore":
            for sentence in warnings_in(results):
                warnings.warn(sentence, SimulationWarning, stacklevel=3)
        return results

    @property
    def inputs(self) -> Inputs:
        """The random inputs of a sample by name, in their order, with their units and distributions.

        `study.inputs.sample(n)` draws an array for `evaluate`.

        Examples
        --------
        >>> import rbchain as rb
        >>> study = rb.Study(
        ...     rb.Model.serial_chain(1), samples=10, simulate=rb.Simulation(1.0),
        ...     vary={"*.q": rb.Uniform("-20 deg", "20 deg")},
        ... )
        >>> study.inputs
        Inputs({'link1.q': 'rad'})
        >>> study.evaluate(study.inputs.sample(5)).sizes["sample"]
        5
        """
        return Inputs(self.plan.drawn, self.description.seed)

    merge = merging.merge
    evaluate = given_samples.evaluate
    sample = replay.sample
    motions = replay.motions
    gradient = gradients.gradient
    control_variates = controls.control_variates
    sobol_indices = sensitivity.sobol_indices
    morris = sensitivity.morris
    shapley_effects = shapley.shapley_effects
    probability = rare.probability
