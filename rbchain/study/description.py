"""Description of a study, the same from `study.toml` and from Python. A study's initial state enters here."""

import functools
import hashlib
import json
import tomllib
import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import BaseModel, BeforeValidator, Field, StrictInt, ValidationError, model_validator
from scipy.interpolate import PPoly

from ..actions.events import Event
from ..actions.tables import DRIVES, action_of
from ..actions.wrenches import Current, Wrench
from ..chain import Model
from ..errors import RbchainError, StudyError
from ..io import load
from ..io.controller_models import with_controller_model
from ..model.joint import Free
from ..real_arrays import excerpt
from ..simulation_settings import DEFAULT_MAX_STEPS
from .designs import AnyDesign, Random, Table
from .distributions import AnyDistribution, MultivariateNormal, triangle_of_correlation
from .measures import Measure
from .numbers import Described, real_numbers, refuse_unreal
from .parameter_table import PARAMETERS

MOST_SAMPLES = 10**15  # of a study: a million per second take thirty years
MOST_TIMES = 10**7  # of a motion
FORCES = {"Wrench": Wrench, "Current": Current}


#: One name, or several.
Names = Annotated[tuple[str, ...], BeforeValidator(lambda x: (x,) if isinstance(x, str) else x)]


class SerialChain(Described):
    """The classical chain of equal links, as `Model.serial_chain` makes it, with the same defaults."""

    n: Annotated[int, Field(ge=1)]
    length: Annotated[float, Field(gt=0.0)] = 0.25
    mass: Annotated[float, Field(gt=0.0)] = 0.1
    gravity: tuple[float, float, float] = (0.0, -10.0, 0.0)


class ModelSource(Described):
    """Where the mechanism comes from, in a file: a URDF `file`, or a `serial_chain`.

    `free_base` lets a URDF's root float; `values` are what fields of the model are before anything varies, as for
    `Model.vary`: one number for all bodies or joints, or the whole field.
    """

    file: Path | None = None
    serial_chain: SerialChain | None = None
    free_base: bool = False
    values: dict[str, Any] = Field(default={})

    @model_validator(mode="after")
    def _one(self) -> Self:
        for name, value in self.values.items():
            refuse_unreal(f"values.{name}", value)
        if (self.file is None) == (self.serial_chain is None):
            raise ValueError("expected either file or serial_chain")
        if self.free_base and self.file is None:
            raise ValueError("free_base is of a file; a serial_chain has its base in the world")
        return self

    def build(self, folder: Path) -> Model:
        """The model."""
        if self.file is None:
            model = Model.serial_chain(**self.serial_chain.model_dump())  # type: ignore[union-attr]
        else:
            path = folder / self.file
            if not path.is_file():
                raise StudyError(f"file is {str(self.file)!r}; there is no such file beside the study")
            model = load(path, base=Free() if self.free_base else None)
        fields = {}
        for name, value in self.values.items():
            expected = np.shape(getattr(model, name, value))
            try:
                fields[name] = np.broadcast_to(value, expected)
            except ValueError:
                raise StudyError(f"values.{name} has shape {np.shape(value)}; expected () or {expected}") from None
        return model.vary(**fields)


class Dispersion(Described):
    """One thing that varies from sample to sample.

    Parameters
    ----------
    parameter : str
        What varies. Of bodies with mass: "mass" (the inertia tensor stays as it is, as in `Model.vary`), and
        "mass_and_inertia" (both change by the same factor: another density). Of bodies: "cg", "inertia" (six strains
        xx, yy, zz, xy, xz, yz by which the body is stretched about its cg, E in x -> exp(E/2) x: whatever they are,
        there is such a body), "placement_translation" (in the parent's frame), "placement_rotation" (a rotation
        vector, in the axes of the joint's frame), "payload" (a mass at `point`), and what `Immersion` has; of degrees
        of freedom: "axis" (a rotation vector that misaligns it, in body axes), "pitch", "rotor_inertia", "gear_ratio",
        what `PassiveForces` has, and "q", "qd", "tau", the initial state and the constant joint forces; "gravity",
        "fluid_density", "current"; of drives: "kp", "kd", "ki", "limit", "reference", "signal"; of wrenches: "force",
        "moment".
    targets : str, or several
        Names of bodies, joints (of a joint with several degrees of freedom "name.0" and so on), or the joints and
        bodies of drives and wrenches; "*" and "?" stand for anything.
    how : "set", "add" or "multiply"
        What a draw does to the model's own value.
    distribution : Distribution, or a frozen one of SciPy's
        Of every number independently, but for a `MultivariateNormal`, which is of all components together.
    components : names, optional
        Which of the components vary: all, if not given.
    shared : bool
        Whether all `targets` have one and the same draw.
    point : (3,), m
        Of a payload, where it is fixed to the body.
    name : str
        In the results; the parameter's, if not given.
    """

    renamed: ClassVar[Mapping[str, str]] = {"of": "targets"}

    parameter: str
    targets: Annotated[Names, Field(min_length=1)] = ("*",)
    how: Literal["set", "add", "multiply"] | None = None
    distribution: AnyDistribution
    components: Names | None = None
    shared: bool = False
    point: tuple[float, float, float] = (0.0, 0.0, 0.0)
    name: str = ""

    @model_validator(mode="after")
    def _known(self) -> Self:
        if self.parameter not in PARAMETERS:
            raise ValueError(f"parameter is {self.parameter!r}; expected one of {', '.join(PARAMETERS)}")
        parameter = PARAMETERS[self.parameter]
        if self.how is None:
            object.__setattr__(self, "how", parameter.ways[0])
        if self.how not in parameter.ways:
            raise ValueError(f"how is {self.how!r}; {self.parameter} knows {', '.join(parameter.ways)}")
        chosen = parameter.components if self.components is None else self.components
        if not set(chosen) <= set(parameter.components) or len(set(chosen)) < len(chosen):
            raise ValueError(f"components are {list(chosen)}; {self.parameter} has {list(parameter.components)}")
        object.__setattr__(self, "components", tuple(chosen))
        if isinstance(self.distribution, MultivariateNormal) and self.distribution.mean.size != max(1, len(chosen)):
            raise ValueError(
                f"distribution has {self.distribution.mean.size} means for {len(chosen)} components of {self.parameter}"
            )
        if not self.name:
            object.__setattr__(self, "name", self.parameter)
        return self

    @property
    def component_indices(self) -> list[int]:
        """Which components of the parameter are drawn."""
        return [PARAMETERS[self.parameter].components.index(c) for c in self.components or ()]


class Correlation(Described):
    """How several numbers hang together: the correlation matrix of their normal scores (a Gaussian copula).

    Of normally distributed numbers it is their correlation matrix itself. `parameters` names them as the results do,
    for instance "mass[link1]" and "cg[link1].x".
    """

    renamed: ClassVar[Mapping[str, str]] = {"of": "parameters"}

    parameters: tuple[str, ...]
    matrix: Any

    @model_validator(mode="after")
    def _correlated(self) -> Self:
        matrix = real_numbers("matrix", self.matrix)
        if matrix.shape != (len(self.parameters),) * 2:
            raise ValueError(
                f"matrix has shape {matrix.shape}; expected ({len(self.parameters)}, {len(self.parameters)})"
            )
        triangle_of_correlation(matrix)
        return self


class Simulation(Described):
    """The motion that every sample makes: the arguments of `Model.simulate`.

    `samples` is how many evenly spaced times of it are looked at, by measures, extremes and `Outputs.motion`.
    """

    duration: Annotated[float, Field(gt=0.0)]
    method: Literal["rk45", "rk4", "implicit"] = "rk45"
    step: Annotated[float, Field(gt=0.0)] | None = None
    rtol: float = 1e-8
    atol: float = 1e-10
    max_steps: Annotated[int, Field(ge=1)] = DEFAULT_MAX_STEPS
    samples: Annotated[int, Field(ge=2, le=MOST_TIMES)] = 21
    q: Any = None
    qd: Any = 0.0
    tau: Any = 0.0

    def settings(self) -> dict[str, Any]:
        """The keywords of `Model.simulate` that say how."""
        names = ["method", "max_steps"] + (["rtol", "atol"] if self.method == "rk45" else ["step"])
        return {name: getattr(self, name) for name in names}


class Outputs(Described):
    """What of each motion is kept, beside the measures: its final state, its extremes over time, and all of it."""

    final: bool = True
    extremes: bool = False
    motion: bool = False


class StopWhen(Described):
    """End a study early: once a confidence interval is narrow enough.

    `measure` names the one whose mean it is of, or is "failure rate"; `half_width` is in the measure's unit. Looked at
    after each thousand and twenty-four samples, in their order, so that it ends at the same one however it is run.
    """

    measure: str
    half_width: Annotated[float, Field(gt=0.0)]
    confidence: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.95


def _action(kinds: Mapping[str, Any]) -> Callable[[Any], Any]:
    """A validator that makes drives and forces of tables with their `kind`."""

    def make(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        try:
            return action_of(value, kinds)
        except RbchainError as error:
            raise ValueError(str(error)) from None

    return make


#: Names that outputs and axes of the results have.
RESERVED = {
    *("parameters", "parameter", "q", "qd", "q_final", "qd_final", "q_min", "q_max", "qd_min", "qd_max", "end_time"),
    *("status", "event_count", "event_time", "event", "sample", "time", "position", "velocity", "failure rate"),
    *("zarr.json", "parameter_units", "position_units", "velocity_units"),
}


class Description(Described):
    """All that defines a study: what `study.toml` holds."""

    name: str = "study"
    model: Annotated[Model | ModelSource, BeforeValidator(lambda x: {"file": x} if isinstance(x, (str, Path)) else x)]
    samples: Annotated[StrictInt, Field(ge=1, le=MOST_SAMPLES)]
    seed: Annotated[StrictInt, Field(ge=0, lt=1 << 63)] = 0
    design: AnyDesign = Random()
    vary: tuple[Dispersion, ...] = ()
    correlate: tuple[Correlation, ...] = ()
    simulate: Simulation
    drives: tuple[Annotated[Any, BeforeValidator(_action(DRIVES))], ...] = ()
    forces: tuple[Annotated[Any, BeforeValidator(_action(FORCES))], ...] = ()
    events: tuple[Annotated[Any, BeforeValidator(_action({"Event": Event}))], ...] = ()
    outputs: Outputs = Outputs()
    measures: tuple[Measure, ...] = ()
    stop_when: StopWhen | None = None

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        for what in ("vary", "measures"):
            names = [x.name for x in getattr(self, what)]
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"{what}: the name {twice[0]!r} is there twice; give one of them another `name`")
        taken = sorted({m.name for m in self.measures} & RESERVED)
        if taken:
            raise ValueError(f"measures: {taken[0]!r} is the name of another output; expected another one")
        if self.correlate and isinstance(self.design, Table):
            raise ValueError("correlate: the values of a table are taken as they are; expected no correlations")
        if self.stop_when and self.stop_when.measure not in ("failure rate", *(m.name for m in self.measures)):
            raise ValueError(f"stop_when: there is no measure {self.stop_when.measure!r}")
        return self


def read_description(path: str | Path) -> Description:
    """The description in a TOML file; a StudyError names the line or the key of what is wrong."""
    path = Path(path)
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StudyError(f"there is no file {str(path)!r}") from None
    except (ValueError, RecursionError) as error:  # what is no TOML, no UTF-8, or a number of too many digits
        raise StudyError(f"{path}: the file is not valid TOML: {error}") from None
    except OSError as error:
        raise StudyError(f"{path}: the file cannot be read ({error.strerror})") from None
    drives = found.get("drives")
    if isinstance(drives, list):
        try:
            found["drives"] = [with_controller_model(drive, path.parent) for drive in drives]
        except RbchainError as error:
            raise StudyError(f"{path}: drives: {error}") from None
    return checked(found, str(path))


def checked(given: Mapping[str, Any], source: str = "") -> Description:
    """The description that these keys and values are of; errors begin with the `source`."""
    try:
        return Description(**given)
    except ValidationError as error:
        lines = []
        problems = error.errors()
        # a table that is no Model is no problem, but what is wrong within it
        for problem in [p for p in problems if p["type"] != "is_instance_of"] or problems:
            place = "".join(f"[{x}]" if isinstance(x, int) else f".{x}" for x in problem["loc"] if not _is_tag(x))
            message = problem["msg"].removeprefix("Value error, ")
            found = (
                ""
                if problem["type"] in ("missing", "value_error")
                else f" (found {excerpt(problem['input'], longest=80)})"
            )
            lines.append(f"{place.lstrip('.') or 'the study'}: {message}{found}")
        raise StudyError((f"{source}: " if source else "") + "; ".join(dict.fromkeys(lines))) from None


def _is_tag(part: str | int) -> bool:
    """Whether a part of a place is pydantic's word for which of several kinds it tried, and no key."""
    return isinstance(part, str) and (part in KINDS or part in ("ModelSource", "float", "str") or "[" in part)


KINDS = {
    *("normal", "truncated_normal", "log_normal", "uniform", "triangular", "discrete", "multivariate_normal", "scipy"),
    *("random", "latin_hypercube", "sobol", "factorial", "table"),
}


def as_json(value: Any) -> Any:
    """A value as JSON can hold it, the same for equal values: what a store keeps of its description."""
    if isinstance(value, Model):
        return {"model": value.name, "sha256": fingerprint(value)}
    if isinstance(value, BaseModel):
        return {name: as_json(getattr(value, name)) for name in type(value).model_fields}
    if is_dataclass(value):
        return {"kind": type(value).__name__} | {f.name: as_json(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, PPoly):
        return {"breaks": as_json(value.x), "coefficients": as_json(value.c)}
    if isinstance(value, np.ndarray | np.generic):
        return as_json(value.tolist())
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, functools.partial):
        return {"partial": as_json(value.func), "args": as_json(value.args), "keywords": as_json(value.keywords)}
    function = getattr(value, "py_func", value)
    if hasattr(function, "__code__"):
        return {"function": f"{function.__module__}.{function.__qualname__}", "sha256": _digest_of(function)}
    if hasattr(value, "__dict__") and not isinstance(value, Path):
        return {"object": f"{type(value).__module__}.{type(value).__qualname__}", **as_json(vars(value))}
    return str(value)


def _digest_of(function: Any) -> str:
    """A hash of what a function does, as far as its own code, defaults and closure say."""
    inside = [cell.cell_contents for cell in function.__closure__ or ()]
    parts = [_code_as_json(function.__code__), as_json(function.__defaults__), as_json(function.__kwdefaults__)]
    return hashlib.sha256(json.dumps([*parts, as_json(inside)]).encode()).hexdigest()


def _code_as_json(code: types.CodeType) -> list[Any]:
    constants = [_code_as_json(c) if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts]
    return [code.co_code.hex(), list(code.co_names), list(code.co_freevars), constants]


def fingerprint(model: Model) -> str:
    """A hash of everything that a model is, but for its looks and drives."""
    digest = hashlib.sha256()
    for field in fields(model.description):
        value = getattr(model.description, field.name)
        if field.name in ("visuals", "drives"):  # a study has drives of its own
            continue
        if field.name == "nominal":  # what controllers know
            value = "" if value is None else fingerprint(model.nominal)
        if isinstance(value, np.ndarray):
            digest.update(f"{field.name} {value.shape} {value.dtype}".encode() + np.ascontiguousarray(value).tobytes())
        elif isinstance(value, dict):
            frames = {n: (f.body, f.pose.translation.tolist(), f.pose.rotation.tolist()) for n, f in value.items()}
            digest.update(f"{field.name} {frames}".encode())
        else:
            digest.update(f"{field.name} {value}".encode())
    return digest.hexdigest()


def differences(old: Any, new: Any, place: str = "") -> list[str]:
    """Where two descriptions in JSON differ, each place with what it was and what it is."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = [*old, *(key for key in new if key not in old)]
        return [d for key in keys for d in differences(old.get(key), new.get(key), f"{place}.{key}".lstrip("."))]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [d for i, pair in enumerate(zip(old, new, strict=True)) for d in differences(*pair, f"{place}[{i}]")]
    return [] if old == new else [f"{place} was {old!r:.80}, is {new!r:.80}"]
