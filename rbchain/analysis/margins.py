"""`Model.margins`: gain, phase and delay margins of a feedback loop that is cut at a joint force.

Let x' = A x + B u be the linear model with all drives, and u a joint force that adds to the drives of the cut joint.
The force of these drives changes by -k x. Without it, the mechanism is x' = (A + B k) x + B u, and the loop has the
transfer function

    L(s) = k (s - A - B k)^-1 B,   and 1 + L = 0 for the eigenvalues of A.

The joint forces have the derivatives K and D of `operating_points`. So k is the difference of these derivatives with
the drives, and with constant joint forces in their place. With closed loops, the forces of constraints contain a part
of it. There, a unit joint force has the projection p, and k is the projection of the difference onto p.

Under sampled controllers, the linear model is discrete: x is the state at an instant, x' the state one period later,
and u adds to the output of the controllers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..acting.coordinates import dof_index
from ..acting.drive_table import PRESCRIBES_MOTION
from ..acting.drives import PID, ComputedTorque, PrescribedForce
from ..acting.numeric_fields import Drive, Force
from ..acting.sampled import Sampled
from ..acting.user_forces import UserForces
from ..common.calls import explains_calls
from ..common.real_arrays import FloatArray, excerpt, real_array
from ..errors import ArgumentError
from ..model.arguments import SampleArrays
from ..simulate.request import checked_times
from .coordinates import Coordinates, coordinates_of, coordinates_of_groups
from .crossovers import LoopEquations, LoopMargins, Numbers, unknown_numbers
from .equations import Request
from .equations_of_states import accelerations_by_inputs, state_equations
from .input_ports import INPUT_OF_JOINT
from .linear_models import LinearModel
from .operating_points import (
    Conditions,
    OperatingPoints,
    checked_integrals,
    conditions_of,
    given_states,
    operating_points,
)
from .sampled_equations import sampled_loop

if TYPE_CHECKING:
    from ..facade.model import Model

OUTPUT_OF_LOOP = "feedback "
#: Drives that command a joint force.
OF_JOINT = (PID, ComputedTorque, PrescribedForce)


@dataclass(frozen=True, eq=False)
class Margins(SampleArrays):
    """The result of `Model.margins`. `margins[i]` are the margins of one sample of a batch.

    L is the transfer function of the loop, with the sign of negative feedback: the closed loop has 1 + L = 0. All
    margins are NaN if the closed loop is not stable, because they would have no meaning.

    Attributes
    ----------
    gain_margin : (...) array
        The smallest factor above 1 by which the gains of the loop may grow until a motion no longer decays. Infinite if
        there is none below 1e9.
    lower_gain_margin : (...) array
        The largest factor below 1 to which the gains may fall. Zero if there is none above 1e-9.
    phase_margin : (...) array, rad
        The smallest change of the phase of L, in both directions, at which a motion no longer decays. Infinite
        if the gain of L is below 1 at all frequencies.
    delay_margin : (...) array, s
        The smallest additional delay in the loop at which a motion no longer decays. It may belong to another crossover
        than `phase_margin`. NaN for `Sampled` drives: to find the longest stable delay, use a batch with several values
        of their `delay`.
    phase_crossover, lower_phase_crossover : (...) arrays, Hz
        Frequencies at which L is real and negative: with the gain 1 / gain_margin, and 1 / lower_gain_margin. NaN
        if there are none.
    gain_crossover : (...) array, Hz
        The frequency at which L has the gain 1, with the smallest phase margin. NaN if there is none.
    stable : (...) array of bool
        Whether the closed loop is stable: no small motion grows exponentially.
    loop : LinearModel
        The linear model of L, with one input and one output. `loop.frequency_response(frequency)` is its response. With
        closed loops, its states are the same degrees of freedom for all samples, and `loop.success` is False where they
        do not determine the others. The margins of a sample do not depend on this choice.
    success : (...) array of bool
        False if a sample has no linear model.
    """

    gain_margin: FloatArray
    lower_gain_margin: FloatArray
    phase_margin: FloatArray
    delay_margin: FloatArray
    phase_crossover: FloatArray
    lower_phase_crossover: FloatArray
    gain_crossover: FloatArray
    stable: npt.NDArray[np.bool_]
    loop: LinearModel
    success: npt.NDArray[np.bool_]


@explains_calls(is_method=True, contacts="forces", joint="cut")
def margins(
    model: Model,
    q: npt.ArrayLike | None = None,
    qd: npt.ArrayLike = 0.0,
    *,
    cut: str | tuple[str, int],
    tau: npt.ArrayLike = 0.0,
    drives: Sequence[Drive] | None = None,
    forces: Sequence[Force] = (),
    t: npt.ArrayLike = 0.0,
    integrals: npt.ArrayLike = 0.0,
) -> Margins:
    """Compute the gain, phase and delay margins of a feedback loop, cut at a joint force.

    All drives that command this joint force are in the loop. The loops of other joints remain closed.

    Parameters
    ----------
    model : Model
    q, qd : (..., nq) and (..., nv) arrays, rad or m, and rad/s or m/s
        Equilibrium of each sample, or a state of a steady motion. q defaults to the neutral positions.
    cut : str or (str, int)
        Name of the joint, or a pair (joint, dof), whose joint force is cut.
    tau, drives, forces, t, integrals
        As for `linearize`. A drive must command the joint force: `PID`, `ComputedTorque`, `PrescribedForce` or
        `UserForces`, or `Sampled` with a `PID` or `ComputedTorque`.

    Returns
    -------
    Margins

    Raises
    ------
    ArgumentError
        As for `linearize`; if no drive commands the joint force, or drives with and without `Sampled` do; or for
        `UserForces` on closed loops, or beside `Sampled`.
    ModelError
        As for `linearize`.

    Notes
    -----
    If the drives of the cut joint are `Sampled`, L is the discrete transfer function from the output of their
    controllers back to it, up to half the sampling frequency.

    The margins follow from all crossovers, which are computed as eigenvalues. Source: Boyd, Balakrishnan and Kabamba
    (1989), "A bisection method for computing the H-infinity norm of a transfer matrix and related problems".

    Examples
    --------
    A rod with I = 1.5 kg m^2 and without gravity under PID control, I s^3 + kd s^2 + kp s + ki = 0. It becomes unstable
    if its gains are multiplied by less than I ki / (kp kd) = 0.1:

    >>> import rbchain as rb
    >>> rod = rb.Model.serial_chain(1, length=1.5, mass=2.0, gravity=(0, 0, 0))
    >>> found = rod.margins([0.0], cut="link1", drives=[rb.PID("link1", 0.0, kp=6.0, kd=5.0, ki=2.0)])
    >>> float(found.gain_margin), float(found.lower_gain_margin.round(9))
    (inf, 0.1)
    >>> found.phase_margin.round(4).item(), found.gain_crossover.round(4).item(), found.delay_margin.round(4).item()
    (1.2228, 0.5451, 0.357)
    """
    times, sums = checked_times("margins", t), real_array("integrals", integrals, ArgumentError)
    given = q, qd, tau
    used = model.drives if drives is None else drives
    if any(isinstance(drive, Sampled) for drive in used):
        request = Request("margins", model, given, used, forces, times, sums, inputs=(), outputs=())
        return _margins_of_sampled_loop(request, _dof_of_cut(model, cut))
    conditions, states, t_of_samples = conditions_of("margins", model, given, (drives, forces), times)
    of_samples = checked_integrals(conditions, sums)
    dof = _cut(conditions, cut)
    opened, _, _ = conditions_of("margins", model, given, (_without_feedback(conditions, dof), forces), times)
    state = given_states(conditions, states, t_of_samples)
    points = operating_points(conditions, (*state, of_samples), states[2], t_of_samples)
    is_kept = np.isin(conditions.integrated, opened.integrated)
    of_opened = (*state, of_samples[:, is_kept])
    free = operating_points(opened, of_opened, states[2], t_of_samples)
    by_force = accelerations_by_inputs(conditions, points, points.F[:, :, [dof]])
    missing = points.M @ (points.qdd - free.qdd)[:, :, None]
    onto = np.eye(model.nv)[None, [dof]]
    if conditions.has_loops:
        direction = points.M @ by_force
        with np.errstate(invalid="ignore"):  # zero by zero for a joint that the loops hold
            onto = np.swapaxes(direction, 1, 2) / (direction**2).sum(1, keepdims=True)
        missing = np.eye(model.nv)[:, [dof]] * (onto @ missing)
    constant = operating_points(opened, of_opened, states[2] + missing[:, :, 0], t_of_samples)
    feedback = Feedback(conditions, points, constant, by_force, onto, is_kept)
    coordinates = coordinates_of(conditions, points)
    equations = feedback.equations(coordinates)
    return _result(
        conditions.batch,
        equations,
        _numbers(feedback, equations),
        label=model.velocity_labels[dof],
        maps=(coordinates.of_positions, coordinates.of_velocities),
        states=coordinates.names(model.velocity_labels, conditions.integrated),
        acceleration=points.qdd,
    )


@dataclass(frozen=True)
class Feedback:
    """A feedback loop of each sample, which gives its equations in any independent coordinates.

    `constant` are the states of `points` with constant forces in place of the loop. `by_force` (samples, nv, 1) are the
    accelerations by a unit force, and `onto` (samples or 1, 1, nv) projects forces onto the cut. `is_kept` (integrals,)
    marks the integrals that do not belong to the loop.
    """

    conditions: Conditions
    points: OperatingPoints
    constant: OperatingPoints
    by_force: FloatArray
    onto: FloatArray
    is_kept: np.ndarray

    def rows(self, chosen: np.ndarray) -> Feedback:
        """Return the loops of some of the samples."""
        onto = self.onto[chosen] if len(self.onto) > 1 else self.onto
        return replace(
            self,
            points=self.points.rows(chosen),
            constant=self.constant.rows(chosen),
            by_force=self.by_force[chosen],
            onto=onto,
        )

    def equations(self, coordinates: Coordinates) -> LoopEquations:
        """Compute the equations of the states."""
        samples = len(self.by_force)
        A, _, _ = state_equations(self.conditions, self.points, coordinates, self.by_force[:, :, :0])
        k = self.onto @ _change_of_forces(self.points, self.constant, coordinates, self.is_kept)
        of_integrals = np.zeros((samples, coordinates.integrals, 1))
        B = coordinates.select(np.zeros_like(self.by_force), self.by_force, of_integrals)
        is_usable = np.all([np.isfinite(x).all((1, 2)) for x in (A, B, k)], 0) & self.points.is_finite
        return LoopEquations(A, B, k, is_usable)


def _numbers(feedback: Feedback, common: LoopEquations) -> Numbers:
    """Return the numbers of all loops.

    In closed loops, each sample has its own independent coordinates, so that its margins do not depend on the others.
    `common` are the equations in coordinates of all samples, which open trees have.
    """
    numbers = unknown_numbers(len(feedback.by_force))
    if not feedback.conditions.has_loops:
        numbers.compute(np.arange(len(feedback.by_force)), common)
        return numbers
    for rows, coordinates in coordinates_of_groups(feedback.conditions, feedback.points):
        numbers.compute(rows, feedback.rows(rows).equations(coordinates))
    return numbers


def _margins_of_sampled_loop(request: Request, dof: int) -> Margins:
    """Compute the margins of a loop of sampled controllers, whose equations are discrete."""
    for drive in request.drives:
        is_own = isinstance(drive, OF_JOINT) and dof_index(request.model, "cut", drive.joint, drive.dof) == dof
        if is_own or isinstance(drive, UserForces):
            raise ArgumentError(
                f"cut: {drive.label()} commands the cut joint force without sampling, beside Sampled drives; expected "
                "drives of one kind. Put it into a Sampled, too, or cut another joint"
            )
    found, output = sampled_loop(request, dof)
    A, B, _, _, *maps = found.matrices
    equations = LoopEquations(A, B[:, :, -1:], -output, found.is_usable)
    numbers = unknown_numbers(len(A))
    numbers.compute(np.arange(len(A)), equations, found.period)
    return _result(
        found.batch,
        equations,
        numbers,
        label=request.model.velocity_labels[dof],
        maps=maps,
        states=found.states,
        acceleration=found.acceleration,
        period=found.period,
    )


def _result(
    batch: tuple[int, ...],
    equations: LoopEquations,
    numbers: Numbers,
    *,
    label: str,
    maps: Sequence[FloatArray],
    states: tuple[str, ...],
    acceleration: FloatArray,
    period: float | None = None,
) -> Margins:
    """Return the margins, with the model of the loop that is cut at the joint force with this label."""
    is_usable = equations.is_usable
    A, B, k, positions, velocities = (
        np.where(is_usable[:, None, None], x, np.nan).reshape(*batch, *x.shape[1:]) for x in (*equations[:3], *maps)
    )
    loop = LinearModel(
        A=A + B @ k,
        B=B,
        C=k,
        D=np.where(is_usable[:, None, None], 0.0, np.nan).reshape(*batch, 1, 1),
        states=states,
        inputs=(INPUT_OF_JOINT + label,),
        outputs=(OUTPUT_OF_LOOP + label,),
        positions=positions,
        velocities=velocities,
        acceleration=acceleration.reshape(*batch, acceleration.shape[-1]),
        success=is_usable.reshape(batch),
        period=period,
    )
    found = numbers.margins.copy()
    found[:, 4:] /= 2.0 * np.pi
    fields = dict(zip(LoopMargins._fields, np.moveaxis(found.reshape(*batch, 7), -1, 0), strict=True))
    return Margins(**fields, stable=numbers.is_stable.reshape(batch), loop=loop, success=numbers.success.reshape(batch))


def _cut(conditions: Conditions, cut: str | tuple[str, int]) -> int:
    """Return the degree of freedom whose joint force is cut."""
    i = _dof_of_cut(conditions.model, cut)
    if PRESCRIBES_MOTION[conditions.kinds[i]]:
        raise ArgumentError(
            f"cut: a drive prescribes the motion of {conditions.model.velocity_labels[i]!r}, so a joint force "
            "has no effect; expected another joint. Cut a joint with a PID, or remove the drive"
        )
    return i


def _dof_of_cut(model: Model, cut: str | tuple[str, int]) -> int:
    joint, dof = cut if isinstance(cut, tuple) and len(cut) == 2 else (cut, None)
    if not isinstance(joint, str):
        raise ArgumentError(f"cut is {excerpt(cut)}; expected the name of a joint, or a pair (joint, dof)")
    return dof_index(model, "cut", joint, dof)


def _without_feedback(conditions: Conditions, dof: int) -> list[Drive]:
    """Return the drives without feedback. With closed loops, only the feedback of one degree of freedom is removed."""
    model, drives = conditions.model, conditions.drives
    feedback = [drive for drive in drives if isinstance(drive, (*OF_JOINT, UserForces))]
    own: list[Drive] = [
        drive
        for drive in feedback
        if isinstance(drive, UserForces) or dof_index(model, "cut", drive.joint, drive.dof) == dof
    ]
    if not own:
        raise ArgumentError(
            f"cut: no drive commands the joint force of {model.velocity_labels[dof]!r}; expected a PID, "
            "ComputedTorque, PrescribedForce or UserForces. Cut another joint"
        )
    if conditions.has_loops and any(isinstance(drive, UserForces) for drive in own):
        raise ArgumentError(
            "margins does not support UserForces on closed loops, because they act on all joints; expected drives of "
            "single joints. Use PID"
        )
    left_out = own if conditions.has_loops else feedback
    return [drive for drive in drives if all(drive is not other for other in left_out)]


def _change_of_forces(
    points: OperatingPoints, constant: OperatingPoints, coordinates: Coordinates, is_kept: np.ndarray
) -> FloatArray:
    """Compute minus the derivatives of the forces that are constant in `constant` with respect to the states.

    (samples, nv, states). `is_kept` (integrals,) marks the integrals that both have.
    """
    change: FloatArray = (points.K - constant.K) @ coordinates.of_positions
    change += (points.D - constant.D) @ coordinates.of_velocities
    integrals = change[:, :, change.shape[2] - coordinates.integrals :]
    integrals -= points.C
    integrals[:, :, is_kept] += constant.C
    return change
