"""Description of a study: the keys of `study.toml`, checked. A study's initial state enters here."""

import hashlib
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import BaseModel, BeforeValidator, Field, StrictInt, ValidationError, model_validator

from ...acting.between_bodies import Bushing, SpringDamper
from ...acting.contacts import CONTACTS
from ...acting.events import Event
from ...acting.tables import action_of, drive_of
from ...acting.wrenches import Current, Wrench
from ...common.misspelt import did_you_mean
from ...common.real_arrays import excerpt, real_array
from ...errors import RbchainError, StudyError
from ...facade.model import Model
from ...io import load
from ...io.controller_models import with_controller_model
from ...model.joint import Free
from ...simulate.methods import METHODS, MethodName
from ...simulate.settings import DEFAULT_MAX_STEPS
from .designs import AnyDesign, Random, Table
from .distributions import AnyDistribution, MultivariateNormal, triangle_of_correlation
from .identity import function_as_json, is_own
from .measures import Measure
from .numbers import Described, real_numbers
from .parameter_table import PARAMETERS, REFUSED
from .places import errors_at, message_of

MOST_SAMPLES = 10**15  # a million samples per second would take thirty years
MOST_TIMES = 10**7  # saved times of a motion
FORCES = {force.__name__: force for force in (Wrench, Current, SpringDamper, Bushing, *CONTACTS)}

#: One name, or several.
Names = Annotated[tuple[str, ...], BeforeValidator(lambda x: (x,) if isinstance(x, str) else x)]


class SerialChain(Described):
    """The arguments of `Model.serial_chain`, with the same defaults."""

    n: Annotated[int, Field(ge=1)]
    length: Annotated[float, Field(gt=0.0)] = 0.25
    mass: Annotated[float, Field(gt=0.0)] = 0.1
    gravity: tuple[float, float, float] = (0.0, -10.0, 0.0)


class ElasticMotor(Described):
    """A motor of a joint, as a body of its own: the arguments of `Model.with_motor`, with the same defaults."""

    joint: str
    stiffness: float
    damping: float = 0.0
    backlash: float = 0.0
    rotor_inertia: float | None = None
    gear_ratio: float | None = None
    motor_friction: float = 0.0
    motor_damping: float = 0.0


class ModelSource(Described):
    """The mechanism of a study: either a file or a serial chain.

    Parameters
    ----------
    file : str
        URDF, MJCF (.xml) or TOML file of the mechanism, relative to the folder of the study.
    serial_chain : dict
        Arguments of `Model.serial_chain`: n, length, mass, gravity.
    free_base : bool
        Whether the root link of a URDF file floats. It is fixed to the world by default.
    values : dict
        Values of fields of the model that hold for all samples before a dispersion changes them, as for
        `Model.replace`: one number for all bodies or degrees of freedom, or the whole field.
    motors : list of dict
        Motors that are bodies of their own, in this order: arguments of `Model.with_motor`. They are added after
        `values`.

    Examples
    --------
    >>> from rbchain.study import ModelSource
    >>> ModelSource(serial_chain={"n": 2}, values={"damping": 0.1}).build(".").damping.tolist()
    [0.1, 0.1]
    >>> motor = {"joint": "link1", "stiffness": 20.0, "rotor_inertia": 1e-5, "gear_ratio": 50.0}
    >>> ModelSource(serial_chain={"n": 1}, motors=[motor]).build(".").joint_names
    ('link1', 'link1_deflection')
    """

    file: Path | None = None
    serial_chain: SerialChain | None = None
    free_base: bool = False
    values: dict[str, Any] = Field(default={})
    motors: tuple[ElasticMotor, ...] = ()

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        if (self.file is None) == (self.serial_chain is None):
            found = "neither file nor serial_chain" if self.file is None else "both file and serial_chain"
            raise ValueError(f"found {found}; expected one of them")
        if self.free_base and self.file is None:
            raise ValueError("free_base is true, but only a model from a file can have a free base; remove free_base")
        return self

    def build(self, folder: str | Path) -> Model:
        """Return the model. Its file is relative to `folder`."""
        if self.file is None:
            model = Model.serial_chain(**self.serial_chain.model_dump())  # type: ignore[union-attr]
        else:
            path = Path(folder) / self.file
            if not path.is_file():
                raise StudyError(
                    f"file is {str(self.file)!r}, but {path.resolve()} does not exist; expected a path relative to the "
                    "folder of the study"
                )
            model = load(path, base=Free() if self.free_base else None)
        fields = {}
        for name, value in self.values.items():
            numbers = real_array(f"values.{name}", value, StudyError)
            shape = np.shape(getattr(model, name, numbers))
            try:
                fields[name] = np.broadcast_to(numbers, shape)
            except ValueError:
                raise StudyError(
                    f"values.{name} has shape {numbers.shape}; expected one number, or numbers of shape {shape}"
                ) from None
        model = model.replace(**fields)
        for motor in self.motors:
            model = model.with_motor(**motor.model_dump())
        return model


class Dispersion(Described):
    """A quantity that varies among the samples, and its distribution.

    Parameters
    ----------
    parameter : str
        The quantity; see the list in the notes.
    targets : str or sequence of str
        Names of the bodies, joints, drives or forces whose quantity varies; all of them by default. "*", "?" and
        "[1-3]" match parts of names. A drive, `DryFriction` or `HardStops` has the name of its joint. A
        wrench has the name of its frame, and a `SphereContact` the name of its body. A spring, bushing or
        `SphereSphereContact` has the names of its bodies, such as "slider-rod" or "world-rod". Degree of freedom i of a
        joint that has several is named "joint.i".
    how : "set", "add" or "multiply"
        How a draw changes the model's own value. The default is the first way that the parameter allows: "set" for
        most parameters.
    distribution : Distribution, frozen SciPy distribution or dict
        Distribution of the draws. Every number is drawn independently, except for a `MultivariateNormal`, which draws
        all components together.
    components : str or sequence of str, optional
        The components that vary; all by default.
    shared : bool
        Whether all targets have the same draw. By default each has its own.
    point : (3,) array, m
        Position of a "payload" on its body, in the axes of the body or frame, from its origin.
    name : str
        Name in the results; the name of the parameter by default.

    Notes
    -----
    A study prints the effects of each dispersion on the model before it runs. The following parameters can vary. `how`
    can be "set", "add" or "multiply", unless the parameter names other ways.

    Of each body:

    * "mass": mass in kg. The inertia tensor does not change, as in `Model.vary`. To change the density of a body, use
      "mass_and_inertia".
    * "mass_and_inertia": mass in kg. The inertia tensor changes by the same factor.
    * "cg": components x, y, z of the centre of mass in m, in body axes. The inertia tensor about the centre of mass
      does not change.
    * "inertia" ("add"): components xx, yy, zz, xy, xz, yz of a strain E. It deforms the mass distribution about the
      centre of mass by x -> exp(E/2) x, so every draw gives a physically valid tensor. The mass does not change.
    * "placement_translation": components x, y, z of the joint's position in m, in the parent's frame.
    * "placement_rotation" ("add"): components x, y, z of a rotation vector in rad, in the joint's axes.
    * "payload" ("set"): mass in kg of a point mass that is added at `point`.
    * "volume", "buoyancy_center" (components x, y, z), "strip_drag": fields of `Immersion`.
    * "linear_damping", "quadratic_damping", "added_volume", "added_mass" ("multiply"): factors of these fields of
      `Immersion`.

    Of each degree of freedom:

    * "axis" ("add"): components x, y, z of a rotation vector in rad that misaligns the joint axis, in body axes.
    * "pitch", "rotor_inertia", "gear_ratio": fields of the joint.
    * "stiffness", "damping", "friction" and the other fields of `PassiveForces`.
    * "q" ("set", "add"): initial position in rad or m. Those of free and spherical joints can only be changed by "add".
    * "qd", "tau": initial velocity and constant joint force.

    Of the model:

    * "gravity": components x, y, z in m/s^2, in world axes.
    * "fluid_density": in kg/m^3.
    * "current": components x, y, z of the `Current` in m/s.

    Of drives and forces:

    * "kp", "kd", "ki", "limit": gains and force limit of a drive.
    * "delay", "latency", "rate_limit", "resolution": of a `Sampled` drive of a joint, in s, N m/s or N/s, and N m or N.
    * "time_constant", "stall_torque", "no_load_speed": of an `Actuator`, in s, N m or N, and rad/s or m/s.
    * "torque_speed" ("multiply"): factor of the torques of the curve of an `Actuator`.
    * "encoder_resolution", "encoder_bias", "encoder_noise": of the `Encoder` of a joint, in all drives.
    * "velocity_sensor_resolution", "velocity_sensor_bias", "velocity_sensor_noise": of the `VelocitySensor` of a joint,
      in all drives.
    * "function_parameter": a parameter of `UserForces`, with targets such as "spring.0" for the first parameter of the
      function spring.
    * "function_delay", "function_latency", "function_rate_limit", "function_resolution", "function_limit",
      "function_state": fields of `Sampled` for a user function, which targets name. States have targets such as
      "pulse.0".
    * "reference" ("add"): constant offset of the reference of a `PID` or `ComputedTorque`.
    * "signal" ("add", "multiply"): constant offset of the signal of a `PrescribedForce`, or a factor of the signal.
    * "prescribed_acceleration", "prescribed_velocity", "prescribed_position" ("add", "multiply"): the same for the
      signals of `PrescribedAcceleration`, `PrescribedVelocity` and `PrescribedPosition`.
    * "force", "moment" ("add", "multiply"): components x, y, z of a constant offset of a `Wrench`, in N or N m, or of
      a factor of its signals, such as the level of noise.
    * "wrench_point": components x, y, z of the point of a `Wrench` in m.
    * "spring_stiffness", "spring_damping", "rest_length": of a `SpringDamper`, in N/m, N s/m and m.
    * "spring_point_a", "spring_point_b": components x, y, z of the points of a `SpringDamper` in m.
    * "bushing_stiffness", "bushing_damping" ("multiply"): factors of the matrices of a `Bushing`.
    * "bushing_point_a", "bushing_point_b": components x, y, z of the origins of its frames in m, in axes of the bodies.
    * "bushing_rotation_a", "bushing_rotation_b" ("add"): components x, y, z of a rotation vector in rad that turns a
      frame, in its own axes.

    Of friction, stops and contacts:

    * "dry_friction" ("multiply"): factor of all numbers of a `DryFriction`.
    * "dry_friction_kinetic", "dry_friction_static", "dry_friction_kinetic_backward", "dry_friction_static_backward": in
      N m or N. Numbers that the `DryFriction` does not give follow the others, as in Python.
    * "stop_restitution": of `HardStops`.
    * "contact_friction", "contact_restitution": coefficients of a `SphereContact` or `SphereSphereContact`.
    * "contact_point" (components x, y, z), "contact_radius": of a `SphereContact`, in m.
    * "contact_point_a", "contact_point_b", "contact_radius_a", "contact_radius_b": of a `SphereSphereContact`, in m.
    * "plane_point": components x, y, z of a point of the plane of a `SphereContact` in m, in world axes.
    * "plane_normal" ("add"): components x, y, z of a rotation vector in rad that tilts the normal, in world axes.

    Of constraints, which targets name:

    * "constraint_point_a", "constraint_point_b": components x, y, z of a point in m, in the axes of its moving body.
    * "constraint_axes_a", "constraint_axes_b" ("add"): components x, y, z of a rotation vector in rad that turns the
      frame of a `HingeConstraint` or `WeldConstraint`, in its own axes. The z axis is the axis of a hinge.
    * "constraint_length": length of a `DistanceConstraint` in m.
    * "constraint_ratio", "constraint_offset": of a `CouplerConstraint`; the offset in rad or m.

    With `simulate.assemble`, each sample starts from a closed configuration of its own.

    Examples
    --------
    >>> from rbchain.study import Dispersion, Normal
    >>> masses = Dispersion(parameter="mass", how="multiply", distribution=Normal(mean=1.0, std=0.05))
    >>> masses.name, masses.targets
    ('mass', ('*',))
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
    def _check_parameter(self) -> Self:
        if self.parameter in REFUSED:
            raise ValueError(f"parameter {self.parameter!r} cannot vary: {REFUSED[self.parameter]}")
        if self.parameter not in PARAMETERS:
            raise ValueError(
                f"parameter is {self.parameter!r}; expected one of {', '.join(PARAMETERS)}"
                f"{did_you_mean(self.parameter, PARAMETERS)}"
            )
        parameter = PARAMETERS[self.parameter]
        if self.how is None:
            object.__setattr__(self, "how", parameter.ways[0])
        if self.how not in parameter.ways:
            raise ValueError(
                f"how is {self.how!r}; expected {' or '.join(map(repr, parameter.ways))} for parameter "
                f"{self.parameter!r}"
            )
        if any(self.point) and self.parameter != "payload":
            raise ValueError(
                f"point is {list(self.point)}, but only the parameter 'payload' has a point; remove point from "
                f"{self.parameter!r}"
            )
        chosen = parameter.components if self.components is None else self.components
        if not set(chosen) <= set(parameter.components) or len(set(chosen)) < len(chosen):
            known = f"some of {list(parameter.components)}, each once," if parameter.components else "no components"
            raise ValueError(f"components is {list(chosen)}; expected {known} for parameter {self.parameter!r}")
        object.__setattr__(self, "components", tuple(chosen))
        if isinstance(self.distribution, MultivariateNormal) and self.distribution.mean.size != max(1, len(chosen)):
            raise ValueError(
                f"distribution has {self.distribution.mean.size} means; expected {max(1, len(chosen))}, one for each "
                f"component of {self.parameter!r}"
            )
        if not self.name:
            object.__setattr__(self, "name", self.parameter)
        return self

    @property
    def component_indices(self) -> list[int]:
        """Indices of the components that vary."""
        return [PARAMETERS[self.parameter].components.index(c) for c in self.components or ()]


class Correlation(Described):
    """Correlation of several drawn numbers, by a Gaussian copula.

    Parameters
    ----------
    parameters : sequence of str
        Names of the numbers as in the results, for instance "mass[link1]" and "cg[link1].x".
    matrix : array_like, shape (m, m)
        Correlation matrix of the normal scores of the m numbers. For normally distributed numbers this is their
        correlation matrix.

    Examples
    --------
    >>> from rbchain.study import Correlation
    >>> Correlation(parameters=["mass[link1]", "cg[link1].x"], matrix=[[1.0, 0.5], [0.5, 1.0]]).parameters
    ('mass[link1]', 'cg[link1].x')
    """

    renamed: ClassVar[Mapping[str, str]] = {"of": "parameters"}

    parameters: tuple[str, ...]
    matrix: Any

    @model_validator(mode="after")
    def _check_matrix(self) -> Self:
        matrix = real_numbers("matrix", self.matrix)
        if matrix.shape != (len(self.parameters),) * 2:
            raise ValueError(
                f"matrix has shape {matrix.shape}; expected ({len(self.parameters)}, {len(self.parameters)}), one row "
                "and one column for each of the parameters"
            )
        triangle_of_correlation(matrix)
        return self


class Assembly(Described):
    """Computation of initial states that satisfy the constraints, as by `Model.assemble` and `assemble_velocities`.

    Parameters
    ----------
    fixed : str or sequence of str
        Names of joints that keep their initial positions and velocities. By default none does.

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


class Simulation(Described):
    """Simulation of each sample: arguments of `Model.simulate`.

    Parameters
    ----------
    duration : float, s
    method : "rk45", "dop853", "rosenbrock", "radau", "rk4", "implicit" or "moreau"
    step : float, s
        Step of "rk4", "implicit" and "moreau". The other methods choose their own steps.
    rtol, atol : float
        Tolerances of "rk45", "dop853", "rosenbrock" and "radau", and `atol` also of "moreau", as in `Model.simulate`.
    max_step : float, s, optional
        Longest step of the methods with tolerances, as in `Model.simulate`.
    max_steps : int
        Largest number of steps of the methods with tolerances for one sample.
    samples : int
        Number of evenly spaced times, both ends included, at which the motion is evaluated for measures, extremes and
        `Outputs.motion` (21 by default).
    q : (nq,) array, optional
        Initial positions; the neutral ones by default.
    qd, tau : float or (nv,) array
        Initial velocities and constant joint forces; 0 by default.
    assemble : bool, Assembly or dict
        Whether each sample starts from the closed configuration nearest to `q`, and from the velocities nearest to `qd`
        that satisfy the constraints. `{"fixed": ["crank"]}` names joints that keep theirs. A sample that cannot be
        assembled gets the status NOT_ASSEMBLED. By default, `q` and `qd` have to satisfy the constraints.

    Examples
    --------
    >>> from rbchain.study import Simulation
    >>> Simulation(duration=2.0, method="rk4", step=0.01).samples
    21
    """

    duration: Annotated[float, Field(gt=0.0)]
    method: MethodName = "rk45"
    step: Annotated[float, Field(gt=0.0)] | None = None
    rtol: float = 1e-8
    atol: float = 1e-10
    max_step: Annotated[float, Field(gt=0.0)] | None = None
    max_steps: Annotated[int, Field(ge=1)] = DEFAULT_MAX_STEPS
    samples: Annotated[int, Field(ge=2, le=MOST_TIMES)] = 21
    q: Any = None
    qd: Any = 0.0
    tau: Any = 0.0
    assemble: Annotated[bool | Assembly, BeforeValidator(_expect_assembly)] = False

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


class Outputs(Described):
    """Results to store for each sample, besides the measures.

    Parameters
    ----------
    final : bool
        Final state, as "q_final" and "qd_final" (stored by default).
    extremes : bool
        Minima and maxima of q and qd over the evaluated times.
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

    rbchain checks the rule after every 1024 samples, in their order. So the study ends at the same sample for all chunk
    sizes and executors.

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
    *("status", "event_count", "event_time", "event", "sample", "time", "position", "velocity", "failure rate"),
    *("zarr.json", "parameter_units", "position_units", "velocity_units"),
}


class Description(Described):
    """The whole description of a study."""

    name: str = "study"
    model: Annotated[Model | ModelSource, BeforeValidator(lambda x: {"file": x} if isinstance(x, (str, Path)) else x)]
    samples: Annotated[StrictInt, Field(ge=1, le=MOST_SAMPLES)]
    seed: Annotated[StrictInt, Field(ge=0, lt=1 << 63)] = 0
    design: AnyDesign = Random()
    vary: tuple[Dispersion, ...] = ()
    correlate: tuple[Correlation, ...] = ()
    simulate: Simulation
    drives: tuple[Annotated[Any, BeforeValidator(_action(drive_of))], ...] = ()
    forces: tuple[Annotated[Any, BeforeValidator(_action(partial(action_of, kinds=FORCES)))], ...] = ()
    events: tuple[Annotated[Any, BeforeValidator(_action(partial(action_of, kinds={"Event": Event})))], ...] = ()
    outputs: Outputs = Outputs()
    measures: tuple[Measure, ...] = ()
    stop_when: StopWhen | None = None

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        for key in ("vary", "measures"):
            names = [entry.name for entry in getattr(self, key)]
            repeated = sorted({name for name in names if names.count(name) > 1})
            if repeated:
                raise ValueError(f"{key}: two entries have the name {repeated[0]!r}; give one of them another `name`")
        taken = sorted({m.name for m in self.measures} & RESERVED)
        if taken:
            raise ValueError(
                f"measures: {taken[0]!r} is already the name of another output; give the measure another `name`"
            )
        if self.correlate and isinstance(self.design, Table):
            raise ValueError(
                "correlate: the design reads all values from a table, which cannot be correlated; remove correlate or "
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


def checked(given: Mapping[str, Any]) -> Description:
    """Return the description with these keys and values, or raise a StudyError that names the key of an error."""
    try:
        return Description(**given)
    except ValidationError as error:
        raise StudyError(message_of(error)) from None


def as_json(value: Any) -> Any:
    """Convert a value to JSON for the store. Equal values give equal JSON.

    Raises StudyError if a function depends on an object that cannot be described.
    """
    if isinstance(value, Model):
        return {"model": value.name, "sha256": fingerprint(value)}
    if isinstance(value, BaseModel) and is_own(value):
        return {name: as_json(getattr(value, name)) for name in type(value).model_fields}
    if is_dataclass(value) and is_own(value):
        return {"kind": type(value).__name__} | {f.name: as_json(getattr(value, f.name)) for f in fields(value)}
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
    if isinstance(value, Path):
        return str(value)
    return function_as_json(value)


def fingerprint(model: Model) -> str:
    """Return a hash of a model, without its visuals and drives."""
    digest = hashlib.sha256()
    for field in fields(model.description):
        value = getattr(model.description, field.name)
        if field.name in ("visuals", "drives"):  # a study describes its own drives
            continue
        if field.name == "nominal":  # the model that controllers use
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
    """Return the differences of two descriptions in JSON: each place with its old and its new value."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = [*old, *(key for key in new if key not in old)]
        return [d for key in keys for d in differences(old.get(key), new.get(key), f"{place}.{key}".lstrip("."))]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [d for i, pair in enumerate(zip(old, new, strict=True)) for d in differences(*pair, f"{place}[{i}]")]
    return [] if old == new else [f"{place} was {excerpt(old, longest=80)}, is {excerpt(new, longest=80)}"]
