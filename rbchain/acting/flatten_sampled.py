"""Turn sampled controllers into arrays for the kernels: clocks, groups, channels and sensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from ..common.real_arrays import excerpt
from ..core.control import drive_layout
from ..core.tree import sampler_layout as sampler
from ..errors import ArgumentError
from .coordinates import dof_index, joints_of_dofs
from .drives import PID
from .flatten_needs import flatten_needs
from .packing import SampleNumbers
from .sampled import FORCE, Sampled, is_in_cascade, kinds_of_outputs
from .sampled_functions import function_of
from .sensors import Sensor, flatten_sensor
from .user_code import BatchFunction, UserCall
from .user_forces import UserForces

if TYPE_CHECKING:
    from ..facade.model import Model

#: Largest number of outputs that wait for the end of their delay.
MAX_PENDING = 1000
#: Rows of `Samplers.targets` by the names of outputs.
TARGETS = {"position": sampler.TARGET_POSITION, "velocity": sampler.TARGET_VELOCITY}


@dataclass(frozen=True, eq=False)
class _Group:
    """The clock and the sensors of a group, as the drives give them, and the columns of its row in the kernels.

    `pending` is the largest number of its outputs that are computed but do not act any more.
    """

    drive: Sampled
    codes: np.ndarray
    pending: int


def flatten_samplers(
    model: Model,
    sampled: Sequence[tuple[Sampled, int | None]],
    codes: np.ndarray,
    numbers: SampleNumbers,
    dtype: np.dtype,
    first_code: int,
) -> tuple[sampler.Samplers | None, dict[int, UserCall | BatchFunction]]:
    """Flatten sampled controllers, and replace them in the table of drives by outputs that are held.

    Parameters
    ----------
    model : Model
    sampled : list of pairs
        Sampled drives, and their columns in the table of drives, or None for user functions.
    codes : (drive_layout.ROWS, columns) array of int
        The table of drives, which contains the wrapped controllers. It changes in place.
    numbers : SampleNumbers
    dtype : numpy dtype
        Precision of the simulation.
    first_code : int
        Code of the first user function in `BlockActions.failures`.

    Returns
    -------
    samplers : Samplers or None
    calls : dict
        The user functions by their codes.
    """
    if not sampled:
        Targets(model).table(codes, numbers)
        return None, {}
    found = _Channels(model, codes, numbers)
    for drive, d in sampled:
        if d is None:
            found.add_function(drive, dtype, first_code + len(found.calls))
        else:
            found.add_controller(drive, d, codes[:, d])
    return found.samplers(), found.calls


class _Channels:
    """The groups, sensors and output channels of sampled controllers, which are added one after the other.

    `codes` (drive_layout.ROWS, columns) is the table of drives before the sampled ones are replaced. The first channels
    belong to its columns.
    """

    def __init__(self, model: Model, codes: np.ndarray, numbers: SampleNumbers) -> None:
        self.model, self.numbers, self.controllers = model, numbers, codes.copy()
        self.channels = np.full((sampler.CHANNEL_ROWS, codes.shape[1]), -1, np.int64)
        self.channels[sampler.CHANNEL_DOF] = codes[drive_layout.DOF]
        self.groups: list[_Group] = []
        self.sensors: list[np.ndarray] = []
        self.calls: dict[int, UserCall | BatchFunction] = {}
        self.states, self.most_outputs, self.batch_calls = 0, 0, 0
        self.targets, self.limits = Targets(model), [-1] * codes.shape[1]

    def add_function(self, drive: Sampled, dtype: np.dtype, code: int) -> None:
        """Add a user function with a new group, and channels for its outputs. `code` is the code of its failure."""
        what, numbers = drive.label(), self.numbers
        group, own = self._add_to_group(drive, None)
        kinds, dofs = kinds_of_outputs(drive.outputs), _dofs_of_outputs(self.model, drive, what)
        count, first = len(kinds) * len(dofs), self.channels.shape[1]
        call = function_of(self.model, drive, count, numbers, dtype)
        self.calls[code] = call
        self.batch_calls += isinstance(call, BatchFunction)
        group.codes[[sampler.GROUP_FUNCTION_CODE, sampler.GROUP_CHANNEL]] = code, first
        group.codes[sampler.GROUP_OUTPUT_COUNT] = count
        self.states += _add_function(call, drive, what, group.codes, numbers, self.states, self.batch_calls)
        self.most_outputs = max(self.most_outputs, count)
        self.limits += [_add_limit(drive, what, numbers)] * count
        _refuse_limits_of_two_kinds(drive, what, kinds)
        self.targets.add(drive, what, kinds, dofs, first)
        self.channels = np.concatenate([self.channels, np.repeat(own[:, None], count, axis=1)], axis=1)
        self.channels[sampler.CHANNEL_DOF, -count:] = dofs if kinds == (FORCE,) else -1

    def add_controller(self, drive: Sampled, d: int, column: np.ndarray) -> None:
        """Add a controller in column d of the table of drives (drive_layout.ROWS,), which then holds its output."""
        what = drive.label()
        group, own = self._add_to_group(drive, _group_to_join(self.groups, drive))
        _refuse_fields_of_functions(drive, what)
        self.channels[: sampler.CHANNEL_DOF, d] = own[: sampler.CHANNEL_DOF]  # its dof is there already
        _refuse_sensors_of_other_joints(self.model, drive, what, int(column[drive_layout.DOF]))
        _hold_output(group, column)

    def _add_to_group(self, drive: Sampled, g: int | None) -> tuple[_Group, np.ndarray]:
        """Return group g, or a new one for None, and the column of `channels` for an output without a dof."""
        if g is None:
            g = len(self.groups)
            self.groups.append(_new_group(self.model, drive, self.numbers, self.sensors))
        own = np.array([g, self.numbers.add_field(drive.label(), drive, "rate_limit"), -1])
        self.numbers.add_field(drive.label(), drive, "resolution")
        return self.groups[g], own

    def samplers(self) -> sampler.Samplers:
        """Return the arrays for the kernels. Raises an ArgumentError if the controllers do not fit each other."""
        model, groups = self.model, self.groups
        _refuse_several_clocks(self.controllers, self.channels[sampler.CHANNEL_GROUP, : self.controllers.shape[1]])
        functions = [self.calls.get(group.codes[sampler.GROUP_FUNCTION_CODE]) for group in groups]
        needs, of_needs = flatten_needs(model, functions)
        pending, samples = max(sampler.LAST_OUTPUTS, *(g.pending for g in groups)), math.prod(self.numbers.batch)
        return sampler.Samplers(
            clocks=np.array([[group.drive.period, group.drive.phase] for group in groups], float).T.copy(),
            groups=np.array([group.codes for group in groups]).T.copy(),
            channels=self.channels,
            sensors=np.array(self.sensors, np.int64).reshape(-1, sampler.SENSOR_ROWS).T.copy(),
            sizes=np.array([pending, self.states, self.most_outputs, *of_needs]),
            drives=self.controllers,
            batch_calls=_new_batch_calls(model, samples, self.batch_calls, self.most_outputs),
            targets=self.targets.table(self.controllers, self.numbers),
            limits=None if max(self.limits) < 0 else np.array(self.limits),
            needs=needs,
        )


def _hold_output(group: _Group, column: np.ndarray) -> None:
    """Make a group compute the output of a controller, and the controller's column in the table of drives hold it.

    The column (drive_layout.ROWS,) changes in place.
    """
    group.codes[sampler.GROUP_COMPENSATES] |= column[drive_layout.COMPENSATES_GRAVITY]
    group.codes[sampler.GROUP_COMPUTES] |= column[drive_layout.KIND] == drive_layout.KIND_COMPUTED_TORQUE
    column[[drive_layout.KIND, drive_layout.COMPENSATES_GRAVITY]] = drive_layout.KIND_HELD, 0


def _add_limit(drive: Sampled, what: str, numbers: SampleNumbers) -> int:
    """Add the limit of the outputs of a user function, and return its column; -1 without a limit."""
    column = numbers.add_field(what, drive, "limit")
    return -1 if np.isinf(numbers.columns[column]).all() else column


def _new_batch_calls(model: Model, samples: int, functions: int, outputs: int) -> sampler.BatchCalls | None:
    """Allocate the arguments and outputs of functions that Python calls for the whole batch."""
    if functions == 0:
        return None
    return sampler.BatchCalls(
        due=np.zeros((samples, functions), np.int64),
        measured=np.zeros((functions, samples, model.nq + model.nv)),
        outputs=np.zeros((functions, samples, outputs)),
    )


def _dofs_of_outputs(model: Model, drive: Sampled, what: str) -> list[int]:
    """Return the degrees of freedom on which the outputs of a user function act."""
    if drive.joints is None:
        return list(range(model.nv))
    if not isinstance(drive.joints, (list, tuple)) or not drive.joints:
        raise ArgumentError(f"{what}: joints is {excerpt(drive.joints)}; expected a list of names of joints")
    found: list[int] = []
    for joint in drive.joints:
        first = dof_index(model, f"{what}: joints", joint, 0)
        found.extend(range(first, first + int(model.kernel_model.dofs.counts[model.joint_names.index(joint)])))
    if len(set(found)) < len(found):
        raise ArgumentError(f"{what}: joints is {excerpt([*drive.joints])}; expected each joint once")
    return found


def _add_function(
    call: UserCall | BatchFunction,
    drive: Sampled,
    what: str,
    codes: np.ndarray,
    numbers: SampleNumbers,
    states: int,
    column: int,
) -> int:
    """Add a user function to the codes of its group, and return the number of its states in compiled code.

    `states` is the number of states before it, and `column` is 1 + its column in BatchCalls.
    """
    if isinstance(call, BatchFunction):
        codes[sampler.GROUP_BATCH_CALL] = column
        _refuse_several_latencies(numbers.columns[codes[sampler.GROUP_DELAY] + 1], what)
        return 0
    first, count = numbers.add_row(f"{what}: states", drive.states)
    codes[sampler.GROUP_FUNCTION : sampler.GROUP_FUNCTION_COUNT + 1] = call.function.address, call.first, call.count
    codes[[sampler.GROUP_STATE, sampler.GROUP_STATE_COUNT, sampler.GROUP_STATE_NUMBERS]] = states, count, first
    return count


def _refuse_limits_of_two_kinds(drive: Sampled, what: str, kinds: tuple[str, ...]) -> None:
    """Raise an error for limits and a resolution of outputs of two kinds, because these have different units."""
    if len(kinds) == 1:
        return
    for name, unused in (("limit", np.inf), ("rate_limit", np.inf), ("resolution", 0.0)):
        given = getattr(drive, name)
        if not np.all(np.asarray(given) == unused):
            raise ArgumentError(
                f"{what}: {name} is {excerpt(given)}, but outputs is {excerpt(drive.outputs)}, which have different "
                f"units; expected no {name}. Use one Sampled for each kind of outputs"
            )


def _refuse_fields_of_functions(drive: Sampled, what: str) -> None:
    """Raise an error for fields that only user functions have."""
    if np.size(drive.states):
        raise ArgumentError(f"{what}: states is {excerpt(drive.states)}; only user functions have states; remove them")
    if drive.needs is not None:
        raise ArgumentError(f"{what}: needs is given, but only user functions have needs; remove them")
    if drive.joints is not None:
        raise ArgumentError(f"{what}: joints is {excerpt(drive.joints)}; only user functions have joints; remove them")
    if drive.outputs != FORCE:
        raise ArgumentError(
            f"{what}: outputs is {excerpt(drive.outputs)}; only user functions have outputs other than forces; "
            "remove them"
        )
    if not np.all(np.asarray(drive.limit) == np.inf):
        raise ArgumentError(f"{what}: limit of Sampled is for user functions; set the limit of the controller instead")


def _refuse_several_latencies(latency: np.ndarray, what: str) -> None:
    """Raise an error if the latency differs between samples: Python calls the function for all samples at once."""
    if (latency != latency[:1]).any():
        raise ArgumentError(
            f"{what}: latency differs between samples, but Python calls the function for all samples at once; expected "
            "one number. Or give the function the argument out, so that rbchain compiles it"
        )


def _group_to_join(groups: list[_Group], drive: Sampled) -> int | None:
    """Return the group in which the controller of a joint computes, or None if it needs a new one.

    A PID that follows targets computes after the functions that are listed before it, so it joins no earlier group.
    """
    first = 0
    if is_in_cascade(drive):
        functions = [g for g, group in enumerate(groups) if isinstance(group.drive.controller, UserForces)]
        first = max(functions, default=-1) + 1
    return next((g for g in range(first, len(groups)) if _share_a_clock(groups[g].drive, drive)), None)


def _share_a_clock(a: Sampled, b: Sampled) -> bool:
    """Whether two controllers compute at the same times with the same measurements."""
    return (
        not isinstance(a.controller, UserForces)
        and (a.period, a.phase) == (b.period, b.phase)
        and all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ("delay", "latency"))
        and len(a.sensors) == len(b.sensors)
        and all(map(_are_equal, a.sensors, b.sensors))
    )


def _are_equal(a: Sensor, b: Sensor) -> bool:
    """Whether two sensors return the same measurements."""
    names = [field.name for field in fields(a) if field.name != "name"]
    return type(a) is type(b) and all(np.array_equal(getattr(a, name), getattr(b, name)) for name in names)


def _new_group(model: Model, drive: Sampled, numbers: SampleNumbers, sensors: list[np.ndarray]) -> _Group:
    """Return the group of a drive."""
    what, codes = drive.label(), np.zeros(sampler.GROUP_ROWS, np.int64)
    period = float(drive.period)
    codes[sampler.GROUP_DELAY] = column = numbers.add_field(what, drive, "delay")
    numbers.add_field(what, drive, "latency")
    longest = numbers.columns[column].max(initial=0.0) + numbers.columns[column + 1].max(initial=0.0)
    if longest > MAX_PENDING * period:
        raise ArgumentError(
            f"{what}: delay + latency is {longest:g} s, which is more than {MAX_PENDING} periods of {period:g} s; "
            "expected a shorter delay or a longer period"
        )
    codes[sampler.GROUP_FIRST_SENSOR] = len(sensors)
    if not isinstance(drive.sensors, (list, tuple)):
        raise ArgumentError(f"{what}: sensors is {excerpt(drive.sensors)}; expected a list, such as [rb.Encoder(...)]")
    measured: set[int] = set()
    for sensor in drive.sensors:
        sensors.append(flatten_sensor(model, what, sensor, numbers, measured))
    codes[sampler.GROUP_SENSOR_COUNT] = len(drive.sensors)
    return _Group(drive, codes, int(longest / period) + 2)


def _refuse_sensors_of_other_joints(model: Model, drive: Sampled, what: str, i: int) -> None:
    """Raise an error for a PID controller whose sensors measure only other joints: it would use the exact state."""
    sensors = list(drive.sensors)
    measured = [dof_index(model, what, sensor.joint, sensor.dof) for sensor in sensors]
    if isinstance(drive.controller, PID) and sensors and i not in measured:
        joints = list(dict.fromkeys(sensor.joint for sensor in sensors))
        raise ArgumentError(
            f"{what}: its sensors measure the joints {joints}, but not its own; expected an Encoder or "
            f"a VelocitySensor of joint {drive.controller.joint!r}, dof {drive.controller.dof or 0}, or no sensors"
        )


def _refuse_several_clocks(controllers: np.ndarray, groups: np.ndarray) -> None:
    """Raise an error for computed torques that are computed at different times, because each needs the others."""
    of_computed_torque = groups[controllers[drive_layout.KIND] == drive_layout.KIND_COMPUTED_TORQUE]
    if np.unique(of_computed_torque).size > 1:
        raise ArgumentError(
            "ComputedTorque drives have different clocks; expected the same period, delay, phase, latency and sensors "
            "for all of them, because each torque depends on the accelerations of the other joints"
        )


class Targets:
    """Channels of outputs that are the targets of degrees of freedom."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.channels = np.full((sampler.TARGET_ROWS, model.nv), -1, np.int64)

    def add(self, drive: Sampled, what: str, kinds: tuple[str, ...], dofs: list[int], first: int) -> None:
        """Add the outputs of a function, whose first channel is `first`."""
        for kind in kinds:
            if kind not in TARGETS:
                continue
            taken = self.channels[TARGETS[kind], dofs] >= 0
            if taken.any():
                joint = self._joint(dofs[int(np.argmax(taken))])
                raise ArgumentError(
                    f"{what}: another function computes the {kind} target of joint {joint!r}; expected one"
                )
            self.channels[TARGETS[kind], dofs] = range(first, first + len(dofs))
            first += len(dofs)

    def table(self, drives: np.ndarray, numbers: SampleNumbers) -> np.ndarray | None:
        """Return the channels (TARGET_ROWS, columns), or None without targets, for drives (drive_layout.ROWS, columns).

        Raises an ArgumentError if a target has no controller, or a controller has no target.
        """
        follows, has_target = drives[drive_layout.FOLLOWS_TARGET] == 1, (self.channels >= 0).any(0)
        if not (follows.any() or has_target.any()):
            return None
        has_follower = np.isin(np.arange(self.model.nv), drives[drive_layout.DOF, follows])
        for i in np.flatnonzero(has_target & ~has_follower).tolist():
            raise ArgumentError(
                f"Sampled: outputs are targets of joint {self._joint(i)!r}, which has no PID that follows them; "
                f'expected a drive PID({self._joint(i)!r}, "outer", ...). Or name the joints of the outputs in joints'
            )
        for d in np.flatnonzero(follows).tolist():
            self._check_target(int(drives[drive_layout.DOF, d]), drives[drive_layout.GAINS, d], numbers)
        if not has_target.any():
            return None
        return np.where(follows, self.channels[:, drives[drive_layout.DOF]], -1)

    def _check_target(self, i: int, gains: int, numbers: SampleNumbers) -> None:
        what = f"PID of joint {self._joint(i)!r}"
        if (self.channels[:, i] < 0).all():
            raise ArgumentError(
                f"{what}: its reference is 'outer', but no user function computes its target; expected a "
                "Sampled(function, outputs='position') for this joint"
            )
        kp, ki = (numbers.columns[gains + j] for j in (drive_layout.GAIN_KP, drive_layout.GAIN_KI))
        if self.channels[sampler.TARGET_POSITION, i] < 0 and (kp.any() or ki.any()):
            raise ArgumentError(
                f"{what}: it has kp or ki, but its target is only a velocity; expected kp=0 and ki=0. Compute the "
                "position, too: outputs=('position', 'velocity')"
            )

    def _joint(self, i: int) -> str:
        return joints_of_dofs(self.model, i)[0]
