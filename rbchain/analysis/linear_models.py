"""`Model.linearize`: exact linear models of a batch of mechanisms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..acting.numeric_fields import Drive, Force
from ..acting.sampled import Sampled
from ..common.calls import explains_calls
from ..common.real_arrays import FloatArray, real_array
from ..errors import ArgumentError, missing_package
from ..model.arguments import SampleArrays
from ..simulate.request import checked_times
from .equations import Request, continuous_equations
from .input_ports import GivenInput
from .ports import Output
from .sampled_equations import sampled_equations
from .transfer_functions import FrequencyResponse, checked_frequencies, responses

if TYPE_CHECKING:
    from ..facade.model import Model


@dataclass(frozen=True, eq=False)
class LinearModel(SampleArrays):
    """The result of `Model.linearize`: a linear model of each sample.

    x, u and y are the changes of the states, inputs and outputs from the operating point:

        dx/dt = A x + B u,   y = C x + D u.

    With `Sampled` controllers, it is a discrete model from one measurement of the controllers to the next, with inputs
    that are constant in between:

        x(k + 1) = A x(k) + B u(k),   y(k) = C x(k) + D u(k).

    `linear[i]` is the linear model of one sample of a batch, and `linear[2:5]` has the models of several samples.

    Attributes
    ----------
    A, B, C, D : (..., states, states), (..., states, inputs), (..., outputs, states), (..., outputs, inputs) arrays
        In SI units. NaN for samples that failed.
    states, inputs, outputs : tuples of str
        Their names. The states are "q NAME" and "qd NAME" for each independent degree of freedom. "integral NAME" is
        the integral of a control error, in rad s or m s. NAME is a name in `Model.velocity_labels`. "q NAME" of a free
        or spherical joint is a displacement in body axes, as in `Model.integrate`. An earlier output
        of sampled controllers that has not taken effect yet is a state, in N m or N. "output NAME 2" is the output two
        periods before.
    positions, velocities : (..., nv, states) arrays
        The map back to all degrees of freedom: the changes of the positions, on the tangent space, are `positions @ x`,
        and the changes of the velocities are `velocities @ x`. With closed loops, they contain the dependent degrees of
        freedom. The rows of prescribed motions are zero.
    period : float or None, s
        Time between two measurements of the controllers in a discrete model; None for a continuous one.
    acceleration : (..., nv) array, rad/s^2 or m/s^2
        At the operating point. All values are zero in an equilibrium.
    success : (...) array of bool
        False for samples without a linear model, because their state is not finite, violates the constraints or is
        singular. Also if the independent degrees of freedom of the batch do not determine the others in this sample.
    """

    A: FloatArray
    B: FloatArray
    C: FloatArray
    D: FloatArray
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    positions: FloatArray
    velocities: FloatArray
    acceleration: FloatArray
    success: npt.NDArray[np.bool_]
    period: float | None = None

    def frequency_response(self, frequency: npt.ArrayLike) -> FrequencyResponse:
        """Compute the response to inputs that oscillate, at frequencies (f,) in Hz. See `Model.frequency_response`."""
        frequencies = checked_frequencies(frequency, self.period)
        return FrequencyResponse(
            frequency=frequencies,
            response=responses(frequencies, (self.A, self.B, self.C, self.D), self.period),
            inputs=self.inputs,
            outputs=self.outputs,
            success=self.success,
        )

    def to_scipy(self) -> Any:
        """Return a `scipy.signal.StateSpace`, for one sample.

        Raises
        ------
        ArgumentError
            If this is a batch, or the sample has no linear model.

        Examples
        --------
        >>> import rbchain as rb
        >>> rod = rb.Model.serial_chain(1, length=1.5, gravity=(0, -10, 0)).replace(damping=[0.1])
        >>> system = rod.linearize([-1.5707963267948966]).to_scipy()
        >>> type(system).__name__, system.A.round(6).tolist()
        ('StateSpaceContinuous', [[0.0, 1.0], [-10.0, -1.333333]])
        """
        from scipy.signal import StateSpace

        matrices = self._matrices("to_scipy")
        return StateSpace(*matrices) if self.period is None else StateSpace(*matrices, dt=self.period)

    def to_control(self) -> Any:
        """Return a `control.StateSpace` of the package python-control, for one sample.

        It needs the `control` extra. States, inputs and outputs keep their names, with "_" in place of "." and spaces.

        Raises
        ------
        ArgumentError
            If this is a batch, or the sample has no linear model.
        ImportError
            If the package control is not installed.
        """
        matrices = self._matrices("to_control")
        try:
            import control
        except ImportError:
            raise ImportError(missing_package("to_control needs the package control", "control")) from None
        names = [
            [name.replace(".", "_").replace(" ", "_") for name in x] for x in (self.states, self.inputs, self.outputs)
        ]
        discrete = {} if self.period is None else {"dt": self.period}
        return control.StateSpace(*matrices, **discrete, states=names[0], inputs=names[1], outputs=names[2])

    def _matrices(self, function: str) -> tuple[FloatArray, ...]:
        """Return A, B, C and D of one sample. Raises an ArgumentError for a batch."""
        if self.batch_shape:
            raise ArgumentError(
                f"{function}: this is a batch of shape {self.batch_shape}; expected one sample. "
                f"Use linear[i].{function}()"
            )
        if not self.success:
            raise ArgumentError(f"{function}: the sample has no linear model (success is False); expected one that has")
        return self.A, self.B, self.C, self.D


@explains_calls(is_method=True, contacts="forces")
def linearize(
    model: Model,
    q: npt.ArrayLike | None = None,
    qd: npt.ArrayLike = 0.0,
    *,
    tau: npt.ArrayLike = 0.0,
    inputs: Sequence[GivenInput] | None = None,
    outputs: Sequence[Output] | None = None,
    drives: Sequence[Drive] | None = None,
    forces: Sequence[Force] = (),
    t: npt.ArrayLike = 0.0,
    integrals: npt.ArrayLike = 0.0,
) -> LinearModel:
    """Compute the exact linear model of the equations of motion in each state of a batch.

    The forces are the same as in `accelerations`: gravity, passive forces of the joints, joint forces, drives,
    wrenches, springs and bushings between bodies, and water. The state may be any point of a motion. The linear model
    describes how small changes of the state evolve, with the forces at the given time. It does not contain derivatives
    with respect to time.

    Parameters
    ----------
    model : Model
    q, qd : (..., nq) and (..., nv) arrays, rad or m, and rad/s or m/s
        Operating point of each sample. q defaults to the neutral positions. With closed loops, the state must
        satisfy the constraints; see `assemble`. Prescribed positions and velocities replace the given ones.
    tau : float or (..., nv) array, N m or N
        Joint forces, which are added to the forces of the drives.
    inputs : list, optional
        Names of joints, for the joint force of each of their degrees of freedom, or pairs (joint, dof). The default
        is all degrees of freedom whose motion is not prescribed. Other inputs are:

        * an `rb.Input` that is in signals of the drives or wrenches. Its name identifies it. The operating point uses
          the `value` of the inputs in the drives and forces.
        * ("reference", joint), ("reference_velocity", joint) and ("reference_acceleration", joint), the reference of
          the `PID` or `ComputedTorque` of a joint and its derivatives, or ("reference", joint, dof).
        * ("force", frame), ("moment", frame), and ("wrench", frame) for both. They act at the origin of the frame, in
          world axes.
    outputs : list of pairs, optional
        Pairs of a quantity and a name: ("position", joint), ("velocity", joint), ("acceleration", joint), ("pose",
        frame), ("frame_velocity", frame), ("frame_acceleration", frame), ("reaction", joint) and ("constraint_force",
        constraint), or ("position", joint, dof) for one degree of freedom. A pose has the displacement of the frame, m,
        and its rotation, rad; a velocity has their rates. An acceleration has the time derivatives of the velocity, as
        `body_accelerations`. They are in world axes. A reaction is the force and the moment of `joint_reactions`, in
        body axes, and a force of a constraint has the rows of `constraint_forces`. The default is the positions and
        velocities of all degrees of freedom.
    drives, forces : lists
        As for `accelerations`, and in addition `Sampled` controllers. By default, the drives of the model are used.
        `UserForces` must have derivatives.
    t : float or (...) array, s
        Time of each sample, from 0, at which the signals are evaluated.
    integrals : float or (..., m) array, rad s or m s
        Integrals of the control errors of `PID` and `ComputedTorque` with an integral gain, in the order of the drives.
        For sampled controllers, these are the integrals that their output uses.

    Returns
    -------
    LinearModel

    Raises
    ------
    ArgumentError
        If a shape does not fit, a drive, a force, an input or an output is not supported, a user function raises an
        exception, or a single state violates the constraints.
    ModelError
        If the model has `bodies_without_inertia` whose motion is not prescribed.

    Notes
    -----
    The calculation is in float64, even for states in float32. Where a force has a kink, such as at a limit of a drive
    or at a joint stop, the result is a one-sided derivative.

    Examples
    --------
    A rod hangs down, and a second one stands upright:

    >>> import numpy as np, rbchain as rb
    >>> rod = rb.Model.serial_chain(1, length=1.5, mass=2.0, gravity=(0, -10, 0))
    >>> linear = rod.linearize([[-np.pi / 2], [np.pi / 2]])
    >>> linear.A.round(9).tolist()
    [[[0.0, 1.0], [-10.0, 0.0]], [[0.0, 1.0], [10.0, 0.0]]]
    >>> linear.B[0].round(9).tolist(), linear.states, linear.inputs
    ([[0.0], [0.666666667]], ('q link1', 'qd link1'), ('tau link1',))

    The second one under PD control. The inputs are the reference, and a force at the origin of the rod:

    >>> drives, inputs = [rb.PID("link1", np.pi / 2, kp=60, kd=3)], [("reference", "link1"), ("force", "link1")]
    >>> held = rod.linearize([np.pi / 2], drives=drives, inputs=inputs)
    >>> np.linalg.eigvals(held.A).round(6).tolist()
    [(-1+5.385165j), (-1-5.385165j)]
    >>> held.B[1].round(6).tolist(), held.inputs
    ([40.0, 0.0, 0.0, 0.0], ('reference link1', 'link1 fx', 'link1 fy', 'link1 fz'))
    """
    times, integrals = checked_times("linearize", t), real_array("integrals", integrals, ArgumentError)
    used_drives = model.drives if drives is None else drives
    request = Request("linearize", model, (q, qd, tau), used_drives, forces, times, integrals, inputs, outputs)
    is_sampled = any(isinstance(drive, Sampled) for drive in used_drives)
    found = sampled_equations(request) if is_sampled else continuous_equations(request)
    is_usable, batch = found.is_usable, found.batch
    A, B, C, D, *maps = (
        np.where(is_usable[:, None, None], x, np.nan).reshape(*batch, *x.shape[1:]) for x in found.matrices
    )
    return LinearModel(
        A=A,
        B=B,
        C=C,
        D=D,
        states=found.states,
        inputs=found.inputs,
        outputs=found.outputs,
        positions=maps[0],
        velocities=maps[1],
        acceleration=found.acceleration.reshape(*batch, model.nv),
        success=is_usable.reshape(batch),
        period=found.period,
    )
