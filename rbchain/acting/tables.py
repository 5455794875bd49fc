"""Drives, forces and events as tables of strings and numbers, as they are in files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

import numpy as np

from ..common.real_arrays import real_array
from ..errors import ArgumentError, RbchainError
from ..model.pose import Pose
from .actuators import Actuator
from .drives import ONE_JOINT
from .inputs import Input
from .numeric_fields import POSE, fields_for_inputs, fields_of_kind
from .random_signals import RandomSignal
from .sampled import Sampled
from .sensors import Encoder, VelocitySensor
from .signal_arithmetic import SignalSum
from .signals import Signal, as_signal
from .user_forces import UserForces

DRIVES: dict[str, type] = {kind.__name__: kind for kind in ONE_JOINT}
SENSORS: dict[str, type] = {"Encoder": Encoder, "VelocitySensor": VelocitySensor}


def _input(
    name: str, value: Any = 0.0, lower: float = -np.inf, upper: float = np.inf, factor: Any = 1.0, offset: Any = 0.0
) -> Input | Signal:
    """Return an input, or a multiple of it plus an offset."""
    control, found = Input(name, value, lower, upper), (np.asarray(factor), np.asarray(offset))
    return control if (found[0] == 1.0).all() and not found[1].any() else found[0] * control + found[1]


SIGNALS: dict[str, Callable[..., Signal | RandomSignal | Input]] = {
    "constant": Signal.constant,
    "polynomial": Signal.polynomial,
    "sines": Signal.sines,
    "table": Signal.table,
    "pieces": Signal,
    "noise": Signal.noise,
    "ornstein_uhlenbeck": Signal.ornstein_uhlenbeck,
    "random_walk": Signal.random_walk,
    "sea_state": Signal.sea_state,
    "input": _input,
}
#: Frames of a force. A table without them means the world, because TOML has no None.
ENDS = ("frame_a", "frame_b")
#: Fields of `UserForces` that are functions.
FUNCTIONS = ("function", "derivatives", "parameter_derivatives")


@dataclass(frozen=True)
class NamedFunction:
    """Stands for a function that a table refers to as "module:name", until the reader of the table imports it."""

    name: str

    def __call__(self, *arguments: Any) -> Any:
        raise ArgumentError(
            f"the function {self.name!r} has not been imported; expected a drive with the function itself"
        )


def action_of(table: Mapping[str, Any], kinds: Mapping[str, Any]) -> Any:
    """Return the drive, force or event of a table such as {type = "PID", joint = "link1", kp = 2.0}.

    Raises ArgumentError if its type is unknown, or a key is not a field of this type.
    """
    given = dict(table)
    if "kind" in given:
        raise ArgumentError(f"the key 'kind' is now called 'type'; found kind = {given['kind']!r}")
    kind = given.pop("type", None if len(kinds) > 1 else next(iter(kinds)))
    if not isinstance(kind, str) or kind not in kinds:
        names = {name.lower(): name for name in kinds}
        hint = f"; did you mean {names[kind.lower()]}?" if isinstance(kind, str) and kind.lower() in names else ""
        raise ArgumentError(f"type is {kind!r}; expected one of {', '.join(kinds)}{hint}")
    known = {field.name for field in fields(kinds[kind])}
    unknown = sorted(set(given) - known)
    if unknown:
        renamed = kinds[kind].renamed_arguments.items()
        now = [f"{name} is now called {new}; " for name, new in renamed if name in unknown]
        raise ArgumentError(f"{kind} has no {', '.join(unknown)}; {''.join(now)}it has {', '.join(sorted(known))}")
    given = {name: None for name in ENDS if name in known} | given
    required = (x.name for x in fields(kinds[kind]) if x.default is MISSING and x.default_factory is MISSING)
    missing = [name for name in required if name not in given]
    if missing:
        raise ArgumentError(f"{kind}: required keys are missing: {', '.join(missing)}")
    try:
        poses = fields_of_kind(kinds[kind], POSE)
        return kinds[kind](**{name: _value_of(value, name in poses) for name, value in given.items()})
    except (TypeError, ValueError, RbchainError) as error:
        message = str(error)
        raise ArgumentError(message if message.startswith(kind) else f"{kind}: {message}") from None


def drive_of(table: Mapping[str, Any]) -> Any:
    """Return the drive of a table, which is a `Sampled` if it has a table `sampled` such as {period = 1e-3}.

    A sensor without a joint measures the joint of the drive. A function of `UserForces` that is a text such as
    "module:name" becomes a NamedFunction. Raises ArgumentError, as `action_of` does.
    """
    given = dict(table)
    given |= {name: NamedFunction(given[name]) for name in FUNCTIONS if isinstance(given.get(name), str)}
    clock = given.pop("sampled", None)
    drive = action_of(given, {**DRIVES, "UserForces": UserForces, "Actuator": Actuator})
    if clock is None:
        return drive
    if not isinstance(clock, Mapping):
        raise ArgumentError(f"sampled is {clock!r}; expected a table, such as {{period = 1e-3, delay = 2e-4}}")
    sensors = clock.get("sensors", [])
    if not (isinstance(sensors, list) and all(isinstance(sensor, Mapping) for sensor in sensors)):
        raise ArgumentError(f'sensors is {sensors!r}; expected a list of tables, such as [{{type = "Encoder"}}]')
    joint = {} if isinstance(drive, UserForces) else {"joint": drive.joint}
    own = [action_of(joint | sensor, SENSORS) for sensor in sensors]
    return action_of({"controller": drive, **clock, "sensors": own}, {"Sampled": Sampled})


def _value_of(value: Any, is_pose: bool) -> Any:
    """Return the Pose of a table such as {translation = [0, 0, 1]} in a field for poses; else the signal of a table."""
    return Pose(**value) if is_pose and isinstance(value, dict) else _signal_of(value)


def _signal_of(value: Any) -> Any:
    """Return the Signal of a table such as {type = "sines", amplitude = 1.0}, and other values as they are."""
    if isinstance(value, list) and any(isinstance(x, dict) for x in value):
        return tuple(_signal_of(x) for x in value)
    if not isinstance(value, dict):
        return value
    given = dict(value)
    if "signal" in given:
        raise TypeError(f"the key 'signal' of a signal is now called 'type'; found signal = {given['signal']!r}")
    if "kind" in given:
        raise TypeError(f"the key 'kind' of a table of values is now called 'interpolation'; found {given['kind']!r}")
    kind = given.pop("type", None)
    if not isinstance(kind, str) or kind not in SIGNALS:
        raise TypeError(f"type is {kind!r}; expected one of {', '.join(SIGNALS)}")
    return SIGNALS[kind](**given)


def table_of_drive(drive: Any) -> dict[str, Any]:
    """Return the table of a drive of one joint, without fields that have their default; numbers are exact."""
    table, signals = {"type": type(drive).__name__}, fields_for_inputs(drive)
    for field in fields(drive):
        value = getattr(drive, field.name)
        if field.name == "controller_model" and not isinstance(value, str):
            raise ArgumentError(
                f"{table['type']} of joint {drive.joint!r}: its controller_model is a Model, which a table cannot "
                'contain; expected "nominal" or "own". Pass this drive to simulate() instead of adding it to the model'
            )
        if value is None:
            continue
        value = value.item() if isinstance(value, np.generic) else value
        if value is None or isinstance(value, (str, bool, int)):
            found: Any = value
        elif field.name in signals:
            found = _table_of_signal(field.name, value)
        else:
            found = real_array(field.name, value, ArgumentError).tolist()
        if found != field.default:
            table[field.name] = found
    return table


def _table_of_signal(name: str, value: Any) -> Any:
    if isinstance(value, RandomSignal):
        return _table_of_random_signal(name, value)
    if isinstance(value, SignalSum):
        raise ArgumentError(
            f"{name} is a sum or a derivative of random signals, which a table cannot contain; expected a single "
            "signal. Pass the drive to simulate() instead of adding it to the model"
        )
    signal = as_signal(name, value)
    if signal.inputs:
        return _table_of_input(name, signal)
    if signal.is_constant and not np.isfinite(signal.end):
        return signal.coefficients[..., 0, 0].tolist()
    pieces = {"breaks": signal.breaks.tolist(), "coefficients": signal.coefficients.tolist()}
    pieces |= {"waves": signal.waves.tolist()} if signal.waves.size else {}
    return {"type": "pieces", **pieces} | ({"end": signal.end} if np.isfinite(signal.end) else {})


def _table_of_input(name: str, signal: Signal) -> dict[str, Any]:
    """Return the table of a multiple of an input plus a constant."""
    if len(signal.inputs) > 1 or signal.coefficients.shape[-2:] != (1, 1) or signal.waves.size:
        raise ArgumentError(
            f"{name} is a sum of an input and other signals, which a table cannot contain; expected a multiple of one "
            "Input, plus a constant. Pass the drive to simulate() instead of adding it to the model"
        )
    (term,) = signal.inputs
    numbers = {"value": term.value, "lower": term.lower, "upper": term.upper}
    numbers |= {"factor": term.factor, "offset": signal.coefficients[..., 0, 0]}
    defaults = {"lower": -np.inf, "upper": np.inf, "factor": 1.0, "offset": 0.0}
    found = {key: np.asarray(number).tolist() for key, number in numbers.items()}
    return {"type": "input", "name": term.name} | {k: x for k, x in found.items() if x != defaults.get(k)}


def _table_of_random_signal(name: str, value: RandomSignal) -> dict[str, Any]:
    table = {"type": value.kind}
    for key, number in (*value.parameters.items(), ("seed", value.seed), ("channel", value.channel)):
        if callable(number):
            raise ArgumentError(
                f"{name} is noise whose {key} is a function, which a table cannot contain; expected numbers. Pass an "
                "array of densities and their frequencies"
            )
        if number is not None:
            table[key] = number.tolist() if isinstance(number, np.ndarray) else number
    return table
