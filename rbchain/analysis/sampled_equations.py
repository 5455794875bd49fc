"""The equations of linear models under digital controllers, from one measurement to the next.

Between two instants, the controllers hold their outputs u. The plant without them, x' = A x + B w + E u, is integrated
exactly over a period T, for inputs w that are constant during it. The controllers compute from the measured state

    I_k = I_(k-1) + T (S w_k - q_k),   u_k = G x_k + R w_k + L I_k

with the integrals I of control errors. An output acts one dead time after the measurement, which is the latency plus
the delay. If the dead time is (m + f) T, u_(k-m-1) acts during the first part f T of the period, and u_(k-m) after it.
Former outputs that still have to act are states.

The derivatives G, R and L are differences: the derivatives of the plant with the same controllers without sampling,
minus the derivatives of the plant with the outputs at the operating point as constant forces. Source: Åström and
Wittenmark (1997), "Computer-Controlled Systems", chapter 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..acting.actuators import Actuator
from ..acting.drives import ONE_JOINT, ComputedTorque
from ..acting.numeric_fields import Drive
from ..acting.packing import SampleNumbers
from ..acting.sampled import Sampled, controller_of
from ..acting.user_forces import UserForces
from ..common.real_arrays import FloatArray, excerpt
from ..core.control import drive_layout
from ..errors import ArgumentError
from .coordinates import Coordinates, coordinates_of
from .equations import Equations, Request, are_finite
from .equations_of_states import state_equations
from .input_ports import (
    INPUT_OF_JOINT,
    LinearInput,
    changes_by_inputs,
    columns_of_drives,
    inputs_of,
    wrenches_of_inputs,
)
from .operating_points import Conditions, OperatingPoints, checked_integrals, given_states, operating_points
from .ports import outputs_of, rows_of_outputs

#: A dead time that differs by less than this fraction of the period from whole periods has whole periods.
CLOCK_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Controllers:
    """The sampled controllers of a call, as if they were continuous.

    `dofs` (h,) are the degrees of freedom of their outputs, `columns` their columns in the table of drives, and
    `is_integral` (m,) marks their integrals among the integrals of control errors. `dead_time` (samples,) is in
    periods, and `queue` is the number of former outputs that are states.
    """

    conditions: Conditions
    period: float
    dead_time: FloatArray
    queue: int
    dofs: npt.NDArray[np.int64]
    columns: frozenset[int]
    is_integral: npt.NDArray[np.bool_]

    @property
    def integrated(self) -> npt.NDArray[np.int64]:
        """The degrees of freedom whose errors the controllers integrate."""
        return np.asarray(self.conditions.integrated[self.is_integral], np.int64)

    def owns(self, of: str, index: int) -> bool:
        """Whether a unit change of an input acts through the sampled controllers."""
        if of == "integral":
            return bool(self.is_integral[index])
        if of == "acceleration":  # a computed torque is the first drive of its dof
            return index in self.columns
        return of == "drive force" and index in self.columns


@dataclass(frozen=True)
class _Law:
    """The derivatives of the outputs u (h) and of the summands of the integrals I (m), one period each.

    `of_x` and `of_w` are the derivatives of u with respect to the states and the inputs at constant I, and
    `of_integrals` (samples, h, m) with respect to I. `sum_of_x` and `sum_of_w` are the derivatives of I_k - I_(k-1).
    """

    of_x: FloatArray
    of_w: FloatArray
    of_integrals: FloatArray
    sum_of_x: FloatArray
    sum_of_w: FloatArray


@dataclass(frozen=True)
class _Parts:
    """The parts of the equations: the matrices A, B, C and D of the plant, and the law of the controllers.

    The inputs of the plant are `inputs`, and then the outputs of the controllers.
    """

    controllers: Controllers
    plant: tuple[FloatArray, ...]
    law: _Law
    coordinates: Coordinates
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    acceleration: FloatArray
    is_usable: npt.NDArray[np.bool_]


def sampled_equations(request: Request) -> Equations:
    """Compute the equations under sampled controllers, and continuous drives besides them."""
    return _equations(_parts(request))[0]


def sampled_loop(request: Request, dof: int) -> tuple[Equations, FloatArray]:
    """Open the loop of the sampled controllers of a degree of freedom.

    Returns
    -------
    equations : Equations
        The equations of the closed loop. Their last input adds to the output u_k of these controllers.
    output : (samples, 1, states) array
        The derivatives of u_k with respect to the states.
    """
    parts = _parts(request)
    controllers, (A, B, C, D), law = parts.controllers, parts.plant, parts.law
    labels = controllers.conditions.model.velocity_labels
    at = np.flatnonzero(controllers.dofs == dof)
    if not at.size:
        raise ArgumentError(
            f"cut: no Sampled drive commands the joint force of {labels[dof]!r}; expected one of "
            f"{excerpt([labels[i] for i in controllers.dofs])}. With Sampled drives, only their loops can be cut"
        )
    inputs = len(parts.inputs)
    B, D = (np.insert(x, inputs, 0.0, axis=2) for x in (B, D))
    of_w, sum_of_w = (np.pad(x, ((0, 0), (0, 0), (0, 1))) for x in (law.of_w, law.sum_of_w))
    of_w[:, at, inputs] = 1.0
    parts = replace(
        parts,
        plant=(A, B, C, D),
        law=replace(law, of_w=of_w, sum_of_w=sum_of_w),
        inputs=(*parts.inputs, INPUT_OF_JOINT + labels[dof]),
    )
    equations, outputs = _equations(parts)
    return equations, outputs[:, at]


def _equations(parts: _Parts) -> tuple[Equations, FloatArray]:
    """Return the equations, and the derivatives (samples, h, states) of the outputs u_k of the controllers."""
    matrices, outputs, states_of_control = _discrete(parts.controllers, parts.plant, parts.law, parts.coordinates)
    equations = Equations(
        batch=parts.controllers.conditions.batch,
        matrices=matrices,
        states=(*parts.states, *states_of_control),
        inputs=parts.inputs,
        outputs=parts.outputs,
        acceleration=parts.acceleration,
        is_usable=parts.is_usable & are_finite(matrices),
        period=parts.controllers.period,
    )
    return equations, outputs


def _parts(request: Request) -> _Parts:
    """Compute the parts of the equations."""
    sampled = [drive for drive in request.drives if isinstance(drive, Sampled)]
    _check(request.function, sampled, request.drives)
    conditions, states, times = request.conditions([controller_of(drive) for drive in request.drives])
    controllers = _controllers(conditions, sampled, request.drives)
    sums = checked_integrals(conditions, request.integrals)
    inputs = inputs_of(conditions, request.inputs)
    plant, _, _ = request.conditions([drive for drive in request.drives if not isinstance(drive, Sampled)])
    outputs = outputs_of(plant, request.outputs)
    q, qd = given_states(conditions, states, times)
    with_control = operating_points(conditions, (q, qd, sums), states[2], times)
    points = _points_of_plant(plant, controllers, with_control, (q, qd, sums), states[2])
    coordinates = coordinates_of(plant, points)
    of_plant, of_control = ([_part(x, controllers, own) for x in inputs] for own in (False, True))
    by_w, z_by_w = changes_by_inputs(conditions, with_control, of_plant)
    unit_outputs = with_control.F[:, :, controllers.dofs]
    forces = np.concatenate([by_w, unit_outputs], 2)
    A, by_dofs, B = state_equations(plant, points, coordinates, forces)
    none = np.zeros((plant.samples, plant.model.n_bodies, 6, len(controllers.dofs)))
    wrenches = np.concatenate([wrenches_of_inputs(conditions, points, inputs), none], 3)
    C, D = rows_of_outputs(plant, points, outputs, (coordinates, by_dofs, B), (forces, wrenches))
    z_by_w = np.pad(z_by_w[:, ~controllers.is_integral], ((0, 0), (0, 0), (0, len(controllers.dofs))))
    B = coordinates.select(np.zeros_like(B), B, z_by_w)
    law = _law(controllers, with_control, points, coordinates, changes_by_inputs(conditions, with_control, of_control))
    is_usable = with_control.is_finite & points.is_finite
    is_usable &= (with_control.F[:, controllers.dofs, controllers.dofs] != 0.0).all(1)  # on a torque-speed curve
    return _Parts(
        controllers=controllers,
        plant=(A, B, C, D),
        law=law,
        coordinates=coordinates,
        states=coordinates.names(plant.model.velocity_labels, plant.integrated),
        inputs=tuple(given.name for given in inputs),
        outputs=tuple(name for output in outputs for name in output.names),
        acceleration=points.qdd,
        is_usable=is_usable,
    )


def _check(function: str, sampled: Sequence[Sampled], drives: Sequence[Drive]) -> None:
    """Raise an error for sampled controllers with several clocks, or with outputs that are not linear in the state."""
    first = sampled[0]
    for drive in sampled:
        found, expected = "", "none"
        if isinstance(drive.controller, UserForces):
            found, expected = "a user function as controller", "a PID or a ComputedTorque"
        elif len(drive.sensors):
            found = "sensors"
        elif not np.all(np.isinf(drive.rate_limit)):
            found = "a rate_limit"
        elif np.any(np.asarray(drive.resolution) != 0.0):
            found, expected = "a resolution", "resolution=0"
        elif np.any(np.asarray(drive.latency) >= drive.period):
            found, expected = f"latency={excerpt(drive.latency)}", "a latency below the period"
        if found:
            raise ArgumentError(f"{function}: {drive.label()} has {found}; expected {expected}, for a linear model")
        for name in ("period", "phase", "delay", "latency"):
            if not np.array_equal(getattr(drive, name), getattr(first, name)):
                raise ArgumentError(
                    f"{function}: {drive.label()} has {name}={excerpt(getattr(drive, name))}, but {first.label()} has "
                    f"{excerpt(getattr(first, name))}; expected the same number for all Sampled drives"
                )
    for actuator in drives:
        if isinstance(actuator, Actuator) and np.any(np.asarray(actuator.time_constant) != 0.0):
            raise ArgumentError(
                f"{function}: {actuator.label()} has a time_constant, which the linear model does not have as a state; "
                "expected time_constant=0"
            )


def _controllers(conditions: Conditions, sampled: Sequence[Sampled], drives: Sequence[Drive]) -> Controllers:
    """Return the sampled controllers among the drives."""
    if conditions.has_loops:
        raise ArgumentError(
            f"{conditions.function} does not support Sampled in closed loops; expected an open tree, or continuous "
            "drives. Pass the controller itself, such as the PID"
        )
    of_joints = [drive for drive in drives if isinstance(controller_of(drive), ONE_JOINT)]
    table = conditions.actions.shared.drives
    columns = [d for (d, _), drive in zip(columns_of_drives(conditions), of_joints, strict=True) if drive in sampled]
    computed = [isinstance(drive.controller, ComputedTorque) for drive in sampled]
    kinds = conditions.kinds
    if any(computed) and not (len(set(columns) & set(range(len(kinds)))) == sum(computed) == len(kinds)):
        raise ArgumentError(
            f"{conditions.function} supports a Sampled ComputedTorque only if all degrees of freedom have one, because "
            "it depends on the former outputs of the others; expected one for each degree of freedom, or PID"
        )
    numbers = SampleNumbers(conditions.batch)
    delay, latency = (
        numbers.columns[numbers.add_field(sampled[0].label(), sampled[0], name)] for name in ("delay", "latency")
    )
    dead_time = (delay + latency) / sampled[0].period
    dead_time = np.where(abs(dead_time - np.round(dead_time)) < CLOCK_TOLERANCE, np.round(dead_time), dead_time)
    rows = table[drive_layout.INTEGRAL, columns] - conditions.model.nq - conditions.model.nv
    return Controllers(
        conditions=conditions,
        period=float(sampled[0].period),
        dead_time=np.broadcast_to(dead_time, conditions.samples),
        queue=int(np.ceil(dead_time).max(initial=0.0)),
        dofs=np.unique(table[drive_layout.DOF, columns]),
        columns=frozenset(columns),
        is_integral=np.isin(np.arange(conditions.actions.integrals), rows),
    )


def _part(given: LinearInput, controllers: Controllers, owned: bool) -> LinearInput:
    """Return the unit changes of an input that act through the sampled controllers, or the others."""
    changes = tuple(x for x in given.changes if controllers.owns(x[1].of, x[1].index) == owned)
    return LinearInput(given.name, changes)


def _points_of_plant(
    plant: Conditions,
    controllers: Controllers,
    with_control: OperatingPoints,
    states: tuple[FloatArray, FloatArray, FloatArray],
    tau: FloatArray,
) -> OperatingPoints:
    """Return the operating points of the plant, with the outputs of the controllers as constant forces.

    These forces are M times the difference of the accelerations with and without them. `states` are q, qd and all
    integrals of control errors.
    """
    q, qd, sums = states
    states = q, qd, np.ascontiguousarray(sums[:, ~controllers.is_integral])
    points = operating_points(plant, states, tau, with_control.t)
    forces = (points.M @ (with_control.qdd - points.qdd)[:, :, None])[:, :, 0]
    held = tau.copy()
    held[:, controllers.dofs] += forces[:, controllers.dofs]
    return operating_points(plant, states, held, with_control.t)


def _law(
    controllers: Controllers,
    with_control: OperatingPoints,
    plant: OperatingPoints,
    coordinates: Coordinates,
    by_inputs: tuple[FloatArray, FloatArray],
) -> _Law:
    """Return the law of the controllers; `by_inputs` are the changes of forces and of errors for unit inputs."""
    P, V, dofs = coordinates.of_positions, coordinates.of_velocities, controllers.dofs
    forces = (plant.K - with_control.K) @ P + (plant.D - with_control.D) @ V
    return _Law(
        of_x=forces[:, dofs],
        of_w=by_inputs[0][:, dofs],
        of_integrals=with_control.C[:, dofs][:, :, controllers.is_integral],
        sum_of_x=-controllers.period * P[:, controllers.integrated],
        sum_of_w=controllers.period * by_inputs[1][:, controllers.is_integral],
    )


def _discrete(
    controllers: Controllers, plant: tuple[FloatArray, ...], law: _Law, coordinates: Coordinates
) -> tuple[tuple[FloatArray, ...], FloatArray, tuple[str, ...]]:
    """Return the matrices of the equations from one measurement to the next, and the names of the added states.

    Between them are the derivatives (samples, h, states) of the outputs u_k of the controllers. The states are x, the
    integrals I_(k-1), and the former outputs u_(k-1), u_(k-2), ...
    """
    A, B, C, D = plant
    samples, n, h = len(A), A.shape[1], len(controllers.dofs)
    m, inputs = law.of_integrals.shape[2], B.shape[2] - h
    queue = controllers.queue
    size = n + m + h * queue
    # rows (x, I, u_(k-1), ...) of the state and w: the outputs u_k, and the outputs before them
    integral = np.zeros((samples, m, size + inputs))
    integral[:, :, :n], integral[:, :, size:] = law.sum_of_x, law.sum_of_w
    integral[:, :, n : n + m] += np.eye(m)
    outputs = np.zeros((samples, 1 + queue, h, size + inputs))
    outputs[:, 0] = law.of_integrals @ integral
    outputs[:, 0, :, :n] += law.of_x
    outputs[:, 0, :, size:] += law.of_w
    for j in range(queue):
        outputs[:, 1 + j, :, n + m + h * j : n + m + h * (j + 1)] = np.eye(h)
    # the parts of the period before and after the output of this period begins to act
    whole = np.floor(controllers.dead_time)
    part = controllers.dead_time - whole
    row = np.arange(samples)
    first = outputs[row, (whole + (part > 0.0)).astype(int)]
    second = outputs[row, whole.astype(int)]
    before, after = (_held(A, B, controllers.period * x) for x in (part, 1.0 - part))
    state = np.zeros((samples, n, size + inputs))
    state[:, :, :n] = np.eye(n)
    inputs_only = np.zeros((samples, inputs, size + inputs))
    inputs_only[:, :, size:] = np.eye(inputs)
    for (transition, by_forces), acting in ((before, first), (after, second)):
        state = transition @ state + by_forces @ np.concatenate([inputs_only, acting], 1)
    following = np.concatenate([state, integral, outputs[:, :queue].reshape(samples, h * queue, size + inputs)], 1)
    observed = D @ np.concatenate([inputs_only, first], 1)
    observed[:, :, :n] += C
    maps = (np.pad(x, ((0, 0), (0, 0), (0, size - n))) for x in (coordinates.of_positions, coordinates.of_velocities))
    matrices = (following[:, :, :size], following[:, :, size:], observed[:, :, :size], observed[:, :, size:], *maps)
    labels = controllers.conditions.model.velocity_labels
    names = [f"integral {labels[i]}" for i in controllers.integrated]
    names += [f"output {labels[i]} {j + 1}" for j in range(queue) for i in controllers.dofs]
    return matrices, outputs[:, 0, :, :size], tuple(names)


def _held(A: FloatArray, B: FloatArray, duration: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Integrate x' = A x + B v over durations (samples,), s, with constant v: return dx/dx_0 and dx/dv."""
    from scipy.linalg import expm  # slow to import, and only sampled controllers need it

    n, columns = B.shape[1:]
    joined = np.zeros((len(A), n + columns, n + columns))
    joined[:, :n, :n], joined[:, :n, n:] = A, B
    usable = np.isfinite(joined).all((1, 2))
    found = np.full_like(joined, np.nan)
    if usable.any() and joined.shape[1]:
        found[usable] = expm(joined[usable] * duration[usable, None, None])
    return found[:, :n, :n], found[:, :n, n:]
