"""Trajectory: the result of `simulate`, with the saved states and the status of each sample."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..acting.contacts import ImpactRecord, StickingRecord
from ..acting.events import EventRecord
from ..acting.flatten_between_bodies import elastic_energy
from ..acting.numeric_fields import Force
from ..common.lock_free import cached_property
from ..common.misspelled import SuggestsAttributes
from ..common.pickles import PickledByName
from ..common.real_arrays import FloatArray, excerpt
from ..errors import ArgumentError
from ..model.arguments import check_sample_index
from ..model.named_items import NamedDict
from ..plots import motions
from . import joint_motion, messages, showing, tables
from .outcomes import Outcomes
from .parts_of_motions import results_at_times, results_of_samples
from .reactions import constraint_forces, joint_forces, reactions, refuse_contacts

if TYPE_CHECKING:
    from pathlib import Path

    from ..facade.model import Model
    from .continuation import Continuation
    from .dense_output import DenseOutput


@dataclass(frozen=True, eq=False)
class Trajectory(Outcomes, PickledByName, SuggestsAttributes):
    """The trajectories of a batch of samples.

    `Model.simulate` and `rbchain.load_motion` return trajectories. The arguments of the constructor are not part of the
    public interface.

    Attributes
    ----------
    t : (times,) array, s
        Saved times.
    q, qd : (..., times, nq), (..., times, nv) arrays
        Positions and velocities at these times. After an event with `stop=True`, they keep their values at the event.
        After a sample has failed, they are NaN.
    status : (...) array of int
        Status of each sample, as the integer of a `Status`. For example, `motion.status == rb.Status.DONE`.
    end_time, end_q, end_qd : (...), (..., nq), (..., nv) arrays
        Last valid time and state of each sample, even if the sample failed.
    steps, rejections, evaluations : (...) arrays of int
        Accepted steps, rejected ones, and evaluations of the dynamics.
    events : tuple of EventRecord
        Occurrences of each event.
    model : Model
        The simulated model.
    forces : tuple
        The wrenches, springs, bushings and current of the simulation.
    exceptions : dict
        For each sample whose user function raised an exception: the function, the exception and the time, as text. The
        key is the index of the sample in the batch, a tuple. Contains at most the first thousand such samples.
    is_stiff : (...) array of bool
        Samples whose step size was limited by stability rather than by the tolerances, which "rk45" and "dop853"
        detect. "rosenbrock" takes fewer steps for these samples.
    dof_beyond_limits : (...) array of int
        The degree of freedom that was the first to exceed its position limits; -1 if none did.
    oscillating_dof : (...) array of int
        The first degree of freedom whose `Sampled` controller oscillates near its sampling rate at the end;
        -1 if there is none. The amplitude grows, or only the limit of a `PID` or `ComputedTorque` bounds it.
    contact_forces : (..., times, contacts, 3) array, N
        Forces of the contacts, such as `SphereContact`, on their bodies in world axes, in the order of `forces`.
        Between two bodies: on `frame_b`.
        With the method "moreau", they are the mean over the step that ends at the time; at the first time, over the
        step that starts there. An impact adds its impulse divided by the length of the step. With "rk45" and
        "rosenbrock", they are the forces at the time, without the impulses of impacts.
    impacts : tuple of ImpactRecord
        Impacts of each `HardStops` and contact, in the order of `forces`.
    sticking : tuple of StickingRecord
        Intervals during which each joint with `DryFriction` and each contact with friction sticks, in the order of
        `forces`.
    contact_residual : (...) array, m/s or rad/s
        Maximum residual of the equations of dry friction, stops and contacts over the trajectory of each sample.
    contact_tolerance : float, m/s or rad/s
        Tolerance of these equations in the method "moreau"; infinite for other methods.
    derivatives : dict
        Derivatives of the states at the saved times, {name: (..., times, 2 nv, ...) array}, for the names in the
        argument `derivatives` of `simulate`. The rows are the positions on the tangent space, in the directions of
        the velocities as in `Model.difference`, then the velocities. The last axes are the axes of the field: (nv,) for
        "q", "qd", "tau", joints and gains, (n_bodies,) for "mass", (n_bodies, 3) for "cg", (n_bodies, 3, 3) for
        "inertia" and (values,) for "signal". Gravity has the axis (3,), and a matrix of a bushing (6, 6). NaN after the
        end of a sample that ended early.
    start_time : float, s
        Time at the start of the trajectory.
    dense_output : DenseOutput, optional
        The accepted steps, if `simulate` was asked to keep them. Measures of studies use them.
    """

    internal_names: ClassVar[tuple[str, ...]] = (
        "at_times",
        "continuation",
        "has_energy_error",
        "has_inexact_contacts",
        "joint_forces",
        "knows_tau_and_qdd",
        "model_of_states",
        "oscillates",
        "without_energy_error",
    )
    renamed_attributes: ClassVar[dict[str, str]] = {"of_sample": "motion[i]", "sensitivities": "motion.derivatives"}
    foreign_attributes: ClassVar[dict[str, str]] = {
        "qpos": "q",
        "qvel": "qd",
        "qacc": "qdd",
        "ctrl": "tau",
        "y": "q and qd",
        "x": "q and qd",
        "time": "t",
        "times": "t",
        "energy": "model.energy(motion.q, motion.qd), and motion.elastic_energy",
        "energies": "model.energy(motion.q, motion.qd), and motion.elastic_energy",
    }
    t: FloatArray
    q: FloatArray
    qd: FloatArray
    status: np.ndarray
    steps: np.ndarray
    rejections: np.ndarray
    evaluations: np.ndarray
    events: tuple[EventRecord, ...] = ()
    model: Model = None  # type: ignore[assignment]
    forces: tuple[Force, ...] = ()
    end_time: FloatArray = None  # type: ignore[assignment]
    end_q: FloatArray = None  # type: ignore[assignment]
    end_qd: FloatArray = None  # type: ignore[assignment]
    exceptions: dict[tuple[int, ...], str] = field(default_factory=dict)
    is_stiff: np.ndarray = None  # type: ignore[assignment]
    dof_beyond_limits: np.ndarray = None  # type: ignore[assignment]
    oscillating_dof: np.ndarray = None  # type: ignore[assignment]
    contact_forces: FloatArray = None  # type: ignore[assignment]
    impacts: tuple[ImpactRecord, ...] = ()
    sticking: tuple[StickingRecord, ...] = ()
    contact_residual: FloatArray = None  # type: ignore[assignment]
    contact_tolerance: float = math.inf
    derivatives: dict[str, FloatArray] = field(default_factory=dict)
    start_time: float = 0.0
    dense_output: DenseOutput | None = None
    _continuation: Continuation | None = None
    _energy_error: FloatArray | None = None
    _compute_tau_and_qdd: Callable[[], FloatArray] | None = None

    def __post_init__(self) -> None:
        """Fill the end states with NaN if they are not given; by default, no sample is stiff or exceeds its limits."""
        shape = self.status.shape
        if self.is_stiff is None:
            object.__setattr__(self, "is_stiff", np.zeros(shape, bool))
        for name in ("dof_beyond_limits", "oscillating_dof"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, np.full(shape, -1))
        if self.contact_forces is None:
            object.__setattr__(self, "contact_forces", np.zeros((*self.q.shape[:-1], 0, 3), self.q.dtype))
        words = "the trajectory", "derivative", "derivatives"
        object.__setattr__(self, "derivatives", NamedDict(*words, self.derivatives))
        if self.contact_residual is None:
            object.__setattr__(self, "contact_residual", np.zeros(shape))
        for name, numbers in (("end_time", ()), ("end_q", self.q.shape[-1:]), ("end_qd", self.qd.shape[-1:])):
            if getattr(self, name) is None:
                object.__setattr__(self, name, np.full((*shape, *numbers), np.nan))

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of the batch; () for a single state."""
        return self.status.shape

    @cached_property
    def model_of_states(self) -> Model:
        """The model for the saved states: if its samples differ, it has an axis for the times after the batch."""
        return self.model[..., None]

    @cached_property
    def tau(self) -> FloatArray:
        """Actuator forces at the saved times, (..., times, nv), N m or N, including the forces of prescribed motions.

        The forces of prescribed motions are NaN if the simulation has dry friction, hard stops or contacts. Like
        accelerations and reactions, all forces are NaN after the end of a sample that ended early, even if an event
        ended it.
        """
        return self._tau_and_qdd[..., : self.qd.shape[-1]]

    @cached_property
    def qdd(self) -> FloatArray:
        """Accelerations at the saved times, (..., times, nv), rad/s^2 or m/s^2.

        Raises ArgumentError if the simulation has dry friction, hard stops or contacts, because accelerations are
        not defined at impacts.
        """
        refuse_contacts(self, "qdd")
        return self._tau_and_qdd[..., self.qd.shape[-1] :]

    @cached_property
    def elastic_energy(self) -> FloatArray:
        """Elastic energy at the saved times, (..., times), J.

        It is the energy of joint springs and elastic stops (`PassiveForces`), and of springs and bushings between
        bodies. `Model.energy` computes the kinetic energy, and the potential energy of gravity.
        """
        return elastic_energy(self.model, self.forces, self.q, self.qd)

    @property
    def has_energy_error(self) -> bool:
        """Whether `energy_error` was requested."""
        return self._energy_error is not None

    @property
    def energy_error(self) -> FloatArray:
        """Energy that the method has gained since the start, at the saved times, (..., times), J; negative for a loss.

        The change of the kinetic, potential and elastic energy since the start, minus the work of all other forces:
        drives, passive damping and friction, wrenches, dampers, water, contacts, impacts and constraints. It is zero
        for an exact solution. NaN after the end of a sample that ended early.

        Only `simulate(..., energy_error=True)` integrates the work. Otherwise, access raises an ArgumentError.

        Notes
        -----
        The work of a step is the quadrature of the power along the dense output of the method, so the error has the
        order of the method. Projections onto constraints and corrections of positions count as errors. The work of an
        impulse is its product with the mean of the velocities before and after it, which is the energy that the impact
        loses.

        Examples
        --------
        A pendulum with damping swings for 5 s. The implicit method loses energy that damping does not explain:

        >>> import rbchain as rb
        >>> builder = rb.ModelBuilder(gravity=(0, -10, 0))
        >>> builder.add_body("bob", joint=rb.Revolute((0, 0, 1)), inertia=rb.Inertia(1.0, cg=(1, 0, 0)),
        ...                  passive=rb.PassiveForces(damping=0.1))
        >>> pendulum = builder.build()
        >>> exact = pendulum.simulate(duration=5.0, energy_error=True)
        >>> coarse = pendulum.simulate(duration=5.0, method="implicit", step=1e-2, energy_error=True)
        >>> bool(abs(exact.energy_error[-1]) < 1e-6), round(float(coarse.energy_error[-1]), 4)
        (True, -0.0433)
        """
        if self._energy_error is None:
            raise ArgumentError(
                "energy_error is not known, because the simulation did not integrate the work of forces; expected a "
                "trajectory from simulate(..., energy_error=True)"
            )
        return self._energy_error

    @property
    def continuation(self) -> Continuation | None:
        """How the trajectory has ended, for `simulate(continue_from=...)`; None for a part or one from a file."""
        return self._continuation

    def without_energy_error(self) -> Trajectory:
        """Return the trajectory without `energy_error`, which is known at the saved times only."""
        return replace(self, _energy_error=None)

    def __getstate__(self) -> dict[str, Any]:
        """Return a state for pickle, with forces and accelerations instead of the function that computes them.

        That function holds addresses of compiled code, which another process does not have. So does the dense output.
        """
        state = {name: value for name, value in self.__dict__.items() if name not in ("tau", "qdd")}
        return {
            **state,
            **({} if self._compute_tau_and_qdd is None else {"_tau_and_qdd": self._tau_and_qdd}),
            "_compute_tau_and_qdd": None,
            "_continuation": None,
            "dense_output": None,
        }

    @property
    def knows_tau_and_qdd(self) -> bool:
        """Whether actuator forces and accelerations are known or can be computed."""
        return self._compute_tau_and_qdd is not None or "_tau_and_qdd" in self.__dict__

    @cached_property
    def _tau_and_qdd(self) -> FloatArray:
        """Actuator forces and accelerations, (..., times, 2 nv), computed for all samples when first read."""
        if self._compute_tau_and_qdd is None:
            raise ArgumentError(
                "this trajectory does not record its drives; only trajectories returned by simulate() do"
            )
        return self._compute_tau_and_qdd()

    def __getitem__(self, samples: Any) -> Trajectory:
        """Return the trajectory of one sample of the batch, or of several.

        Parameters
        ----------
        samples : int, slice, array of int or bool, or tuple of these
            The index in the batch, as for a NumPy array of this shape.

        Raises
        ------
        ArgumentError
            If the batch has no such sample, or if the trajectory is not a batch.

        Examples
        --------
        >>> import numpy as np, rbchain as rb
        >>> motion = rb.Model.serial_chain(1).simulate(np.zeros((5, 1)), duration=0.1)
        >>> motion[0].q.shape, motion[1:3].q.shape, motion[motion.status == rb.Status.DONE].q.shape, len(motion)
        ((101, 1), (2, 101, 1), (5, 101, 1), 5)
        """
        shape = self.batch_shape
        check_sample_index(samples, shape, by_name="motion.of_joint({0!r})")
        if not shape:
            return self
        return replace(
            self,
            **results_of_samples(self, samples),
            _continuation=None,
            _energy_error=None if self._energy_error is None else self._energy_error[samples],
            _compute_tau_and_qdd=(lambda: self._tau_and_qdd[samples]) if self.knows_tau_and_qdd else None,
        )

    def at_times(self, indices: npt.ArrayLike) -> Trajectory:
        """Return the trajectory at some of the saved times, by their indices (m,).

        Raises ArgumentError if there is no such time.
        """
        chosen, last = np.asarray(indices), self.t.shape[-1] - 1
        if chosen.dtype.kind not in "iu" or not ((chosen >= -last - 1) & (chosen <= last)).all():
            raise ArgumentError(
                f"indices is {excerpt(chosen.tolist())}; expected whole numbers from {-last - 1} to {last}, because "
                f"{last + 1} times are saved"
            )
        if np.array_equal(chosen, np.arange(self.t.size)):
            return self
        compute = (lambda: self._tau_and_qdd[..., chosen, :]) if self.knows_tau_and_qdd else None
        return replace(
            self,
            **results_at_times(self, chosen),
            _energy_error=None if self._energy_error is None else self._energy_error[..., chosen],
            _compute_tau_and_qdd=compute,
        )

    def save(self, path: str | Path) -> None:
        """Write the trajectory to a file that `rbchain.load_motion` reads.

        The file contains the model, the forces, the records of events and contacts, and all other attributes of the
        trajectory, bit for bit. It also contains `tau` and `qdd`, which are computed if they have not been read before.

        Parameters
        ----------
        path : str or Path
            A name that ends in `.npz`. An existing file is replaced. `numpy.load` can read the arrays of the file too.

        Raises
        ------
        ArgumentError
            If the trajectory has no model.
        FileFormatError
            If the name does not end in `.npz`.

        Notes
        -----
        The file does not contain the drives and events of the simulation, nor their functions. The actuator forces and
        accelerations at the saved times, and the records of the events, replace them. It does not contain
        `dense_output` either, because its steps require the drives.
        """
        from ..io.motions import save_motion

        save_motion(self, path, self._tau_and_qdd if self.knows_tau_and_qdd else None)

    of_joint = joint_motion.of_joint
    plot = motions.plot
    view = showing.view
    film = showing.film
    to_xarray = tables.to_xarray
    to_dataframe = tables.to_dataframe
    to_parquet = tables.to_parquet
    message = property(messages.message)
    reactions = cached_property(reactions)
    constraint_forces = cached_property(constraint_forces)
    joint_forces = property(joint_forces)

    def __repr__(self) -> str:
        return f"Trajectory({self.status.size} samples, {self.t.size} times to {self.t[-1]:g} s; {self.message})"
