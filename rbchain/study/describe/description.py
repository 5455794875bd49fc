"""Description of a study: the keys of `study.toml`, checked. A study's initial state enters here."""

import tomllib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from pydantic import BeforeValidator, Field, StrictInt, model_validator

from ...acting.events import Event
from ...acting.tables import action_of, drive_of
from ...common.real_arrays import excerpt, real_array
from ...errors import ArgumentError, RbchainError, StudyError
from ...facade.model import Model
from ...io.controller_models import with_controller_model
from ...simulate.methods import METHODS, MethodName
from ...simulate.settings import DEFAULT_MAX_STEPS, number_of_times, times_to_save
from .correlations import Correlation
from .designs import AnyDesign, GivenValues, Random, Table
from .dispersions import Dispersion, dispersions_of
from .forces_of_model import force_of
from .measures import Measure
from .model_source import ModelSource
from .numbers import Described, Names
from .places import errors_at

MOST_SAMPLES = 10**15  # a million samples per second would take thirty years
MOST_TIMES = 10**7  # saved times of a trajectory


class Assembly(Described):
    """Computation of initial states that satisfy the constraints, as by `Model.assemble` and `assemble_velocities`.

    Parameters
    ----------
    fixed : str or sequence of str
        Names of joints that keep their initial positions and velocities. By default, there are none.

    Examples
    --------
    >>> from rbchain.study import Assembly
    >>> Assembly(fixed="crank").fixed
    ('crank',)
    """

    fixed: Names = ()


def _expect_assembly(value: Any) -> Any:
    if not isinstance(value, bool | dict | Assembly):
        raise ValueError(f'found {excerpt(value)}; expected true, false or a table such as {{ fixed = ["crank"] }}')
    return value


def _saved_times(value: Any) -> Any:
    """Return a number of times, or a tuple of times, so that a description is equal to the same one from a file."""
    if value is None:
        return None
    if np.ndim(value):
        return tuple(real_array("save_at", value, ValueError).reshape(-1).tolist())
    count = number_of_times(value)
    if count > MOST_TIMES:
        raise ValueError(f"save_at is {excerpt(value)}; expected at most {MOST_TIMES:,} times")
    return count


class Simulation(Described):
    """Simulation of each sample: arguments of `Model.simulate`.

    Parameters
    ----------
    duration : float, s
    method : "rk45", "dop853", "rosenbrock", "radau", "rk4", "implicit" or "moreau"
    step : float, s
        Step of "rk4", "implicit" and "moreau". The other methods choose their own steps.
    rtol, atol : float
        Tolerances of "rk45", "dop853", "rosenbrock" and "radau", as in `Model.simulate`. "moreau" also uses `atol`.
    max_step : float, s, optional
        Longest step of the methods with tolerances, as in `Model.simulate`.
    max_steps : int
        Largest number of steps of the methods with tolerances for one sample.
    save_at : int or (times,) array, s, optional
        Saved times of `Outputs.motion`, as in `Model.simulate`: a number of evenly spaced times, or increasing times.
        By default 101 times, or at most 101 ends of fixed steps.
        Measures "function" and "energy_error" are evaluated at these times, at the start and at the end.
    save_every : float, s, optional
        Interval of the saved times, instead of `save_at`.
    q : (nq,) array, optional
        Initial positions; the neutral ones by default.
    qd, tau : float or (nv,) array
        Initial velocities and constant joint forces; 0 by default.
    keyframe : str, optional
        Name of a keyframe of the model, which sets `q`, `qd` and the values of the inputs of the model's drives. Then
        `q` and `qd` must not be given.
    assemble : bool, Assembly or dict
        Whether each sample starts from the closed configuration nearest to `q`, and from the velocities nearest to `qd`
        that satisfy the constraints. `{"fixed": ["crank"]}` lists joints that keep their initial state. A sample that
        cannot be assembled gets the status NOT_ASSEMBLED. By default, `q` and `qd` must satisfy the constraints.

    Examples
    --------
    >>> from rbchain.study import Simulation
    >>> Simulation(2.0, method="rk4", step=0.01, save_every=0.5).saved_times.tolist()
    [0.0, 0.5, 1.0, 1.5, 2.0]
    """

    internal_names: ClassVar[tuple[str, ...]] = ("assembly", "is_adaptive", "saved_times", "settings", "times")
    positional: ClassVar[tuple[str, ...]] = ("duration",)

    duration: Annotated[float, Field(gt=0.0)]
    method: MethodName = "rk45"
    step: Annotated[float, Field(gt=0.0)] | None = None
    rtol: float = 1e-8
    atol: float = 1e-10
    max_step: Annotated[float, Field(gt=0.0)] | None = None
    max_steps: Annotated[int, Field(ge=1)] = DEFAULT_MAX_STEPS
    save_at: Annotated[StrictInt | tuple[float, ...] | None, BeforeValidator(_saved_times)] = None
    save_every: Annotated[float, Field(gt=0.0)] | None = None
    q: Any = None
    qd: Any = 0.0
    tau: Any = 0.0
    keyframe: str | None = None
    assemble: Annotated[bool | Assembly, BeforeValidator(_expect_assembly)] = False

    if TYPE_CHECKING:

        def __init__(
            self,
            duration: float,
            *,
            method: MethodName = "rk45",
            step: float | None = None,
            rtol: float = 1e-8,
            atol: float = 1e-10,
            max_step: float | None = None,
            max_steps: int = DEFAULT_MAX_STEPS,
            save_at: npt.ArrayLike | None = None,
            save_every: float | None = None,
            q: npt.ArrayLike | None = None,
            qd: npt.ArrayLike = 0.0,
            tau: npt.ArrayLike = 0.0,
            keyframe: str | None = None,
            assemble: bool | Assembly | dict[str, Any] = False,
        ) -> None: ...

    renamed: ClassVar[Mapping[str, str]] = {"samples": "save_at", "q0": "q", "qd0": "qd"}

    @model_validator(mode="after")
    def _check_state(self) -> Self:
        given = [name for name in ("q", "qd") if name in self.model_fields_set]
        if self.keyframe is not None and given:
            raise ValueError(f"keyframe and {given[0]} are given; remove {given[0]}, because the keyframe contains it")
        return self

    @model_validator(mode="after")
    def _check_times(self) -> Self:
        if self.save_every is not None and self.duration / self.save_every > MOST_TIMES:
            raise ValueError(
                f"save_every is {self.save_every:g} s, which gives more than {MOST_TIMES:,} times in "
                f"{self.duration:g} s; expected a longer interval"
            )
        try:
            times_to_save(self.duration, self.save_at, self.save_every, self.step)
        except ArgumentError as error:
            raise ValueError(str(error)) from None
        return self

    @property
    def times(self) -> tuple[np.ndarray, slice]:
        """All times, from 0 to the end, in s, at which states are evaluated, and the slice of the saved ones."""
        return times_to_save(self.duration, self.save_at, self.save_every, self.step)

    @property
    def saved_times(self) -> np.ndarray:
        """The saved times, in s."""
        times, saved = self.times
        return times[saved]

    @property
    def assembly(self) -> Assembly | None:
        """How initial states are assembled; None if they are used as they are."""
        if isinstance(self.assemble, Assembly):
            return self.assemble
        return Assembly() if self.assemble else None

    @property
    def is_adaptive(self) -> bool:
        """Whether the method chooses the length of its steps."""
        return METHODS[self.method].is_adaptive

    def settings(self) -> dict[str, Any]:
        """Return the keyword arguments of `Model.simulate` for the integration."""
        of_steps = ["rtol", "atol", "max_step", "max_steps"] if self.is_adaptive else ["step"]
        of_contacts = ["atol"] if self.method == "moreau" else []
        return {name: getattr(self, name) for name in ("method", *of_steps, *of_contacts)}


def _expect_simulation(value: Any) -> Any:
    if not isinstance(value, dict | Simulation):
        example = f"rb.Simulation({value:g})" if isinstance(value, int | float) else "rb.Simulation(duration)"
        raise ValueError(f"found {excerpt(value)}; expected a Simulation, such as {example}, or a table")
    return value


class Outputs(Described):
    """Results to store for each sample, besides the measures.

    Parameters
    ----------
    final : bool
        Final state, as "q_final" and "qd_final" (stored by default).
    extremes : bool
        Minima and maxima of q and qd over the whole trajectory, which do not depend on the saved times.
    motion : bool
        q and qd at all evaluated times.

    Examples
    --------
    >>> from rbchain.study import Outputs
    >>> Outputs(motion=True).final
    True
    """

    final: bool = True
    extremes: bool = False
    motion: bool = False


class StopWhen(Described):
    """Rule to end a study early, once a confidence interval is narrow enough.

    rbchain checks the rule after every 1024 samples, in their order. The study therefore ends at the same sample for
    all chunk sizes and executors.

    Parameters
    ----------
    measure : str
        Name of the measure whose mean is estimated, or "failure rate".
    half_width : float
        Half of the width of the interval, in the unit of the results of the measure.
    confidence : float
        Confidence level (0.95 by default).

    Examples
    --------
    >>> from rbchain.study import StopWhen
    >>> StopWhen(measure="height", half_width=0.002).confidence
    0.95
    """

    measure: str
    half_width: Annotated[float, Field(gt=0.0)]
    confidence: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.95


def _action(convert: Callable[[Mapping[str, Any]], Any]) -> Callable[[Any], Any]:
    """Return a validator that converts tables with a key `kind` to drives, forces or events."""

    def make(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        try:
            return convert(value)
        except RbchainError as error:
            raise ValueError(str(error)) from None

    return make


#: Names of outputs and axes of the results.
RESERVED = {
    *("parameters", "parameter", "q", "qd", "q_final", "qd_final", "q_min", "q_max", "qd_min", "qd_max", "end_time"),
    *(
        "status",
        "event_count",
        "event_time",
        "event",
        "sample",
        "time",
        "position",
        "velocity",
        "failure rate",
        "warnings",
    ),
    *("zarr.json", "parameter_units", "position_units", "velocity_units"),
}


class Description(Described):
    """The whole description of a study."""

    name: str = "study"
    model: Annotated[Model | ModelSource, BeforeValidator(lambda x: {"file": x} if isinstance(x, (str, Path)) else x)]
    samples: Annotated[StrictInt, Field(ge=1, le=MOST_SAMPLES)]
    seed: Annotated[StrictInt, Field(ge=0, lt=1 << 63)] = 0
    design: AnyDesign = Random()
    vary: Annotated[dict[str, Dispersion], BeforeValidator(dispersions_of)] = Field(default={})
    correlate: tuple[Correlation, ...] = ()
    simulate: Annotated[Simulation, BeforeValidator(_expect_simulation)]
    drives: tuple[Annotated[Any, BeforeValidator(_action(drive_of))], ...] | None = None  # the drives of the model
    forces: tuple[Annotated[Any, BeforeValidator(_action(force_of))], ...] = ()
    events: tuple[Annotated[Any, BeforeValidator(_action(partial(action_of, kinds={"Event": Event})))], ...] = ()
    outputs: Outputs = Outputs()
    measures: tuple[Measure, ...] = ()
    stop_when: StopWhen | None = None

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        names = [measure.name for measure in self.measures]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"measures: two entries have the name {repeated[0]!r}; give one of them another `name`")
        taken = sorted({m.name for m in self.measures} & RESERVED)
        if taken:
            raise ValueError(
                f"measures: {taken[0]!r} is already the name of another output; give the measure another `name`"
            )
        if self.correlate and isinstance(self.design, Table | GivenValues):
            raise ValueError(
                "correlate: the design takes all values from a table, which cannot be correlated; remove correlate or "
                "choose another design"
            )
        known = ["failure rate", *(measure.name for measure in self.measures)]
        if self.stop_when and self.stop_when.measure not in known:
            raise ValueError(f"stop_when: measure is {self.stop_when.measure!r}; expected one of {known}")
        return self


def read_description(path: str | Path) -> Description:
    """Return the description in a TOML file. A StudyError names the line or the key of an error."""
    path = Path(path)
    try:
        keys = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StudyError(f"{path}: the file does not exist; expected the TOML file of a study") from None
    except (ValueError, RecursionError) as error:  # invalid TOML or UTF-8, or a number of too many digits
        raise StudyError(f"{path}: the file is not valid TOML: {error}") from None
    except OSError as error:
        raise StudyError(
            f"{path}: the file cannot be read ({error.strerror}); expected the TOML file of a study"
        ) from None
    drives = keys.get("drives")
    if isinstance(drives, list):
        with errors_at(f"{path}: drives"):
            keys["drives"] = [with_controller_model(drive, path.parent) for drive in drives]
    with errors_at(str(path)):
        return Description(**keys)
