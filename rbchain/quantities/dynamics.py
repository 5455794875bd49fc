"""Forces and accelerations. Each method hands its states and one driver to the kernel model."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..arguments import as_array, check_overlap, copied_to
from ..drivers import dynamics
from ..errors import StateError
from ..real_arrays import bool_array
from .attributes import Attributes


class Dynamics(Attributes):
    """The part of Model that computes forces and accelerations."""

    def forward_dynamics(
        self,
        q: npt.ArrayLike,
        qd: npt.ArrayLike,
        tau: npt.ArrayLike,
        wrenches: npt.ArrayLike | None = None,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """Accelerations of the joints under given joint forces, by the articulated-body algorithm.

        Parameters
        ----------
        q, qd : (..., nq) and (..., nv) arrays, rad or m, and per second
        tau : (..., nv) array, N m or N
            Forces of the joints' motors; of a screw, moment + pitch times force along the axis.
        wrenches : (..., n, 6) array, N and N m, optional
            External load on each body: force, then moment about the origin of the body's frame, both in world axes.
        out : array, optional
            The array for the result, of its shape and precision; it must not share memory with the arguments. New
            memory for a large batch takes time to be touched.

        Returns
        -------
        (..., nv) array, rad/s^2 or m/s^2

        Raises
        ------
        StateError
            If a shape does not fit, an argument is not real or is masked, or a quaternion is not of unit length (to
            1e-6, in float32 to 1e-5; within that it is used at unit length).
        ModelError
            If the model has `bodies_without_inertia`. If only some samples have such bodies, the results of those
            samples are NaN.

        References
        ----------
        Featherstone (2008), *Rigid Body Dynamics Algorithms*, section 7.3.

        Examples
        --------
        A rod hinged at its end and held level falls with 3 g / (2 l):

        >>> import rbchain as rb
        >>> rod = rb.Model.serial_chain(1, length=0.25, gravity=(0, -10, 0))
        >>> rod.forward_dynamics([0.0], [0.0], [0.0])
        array([-60.])
        """
        model = self.kernel_model
        if not model.has_inertia:
            model = model.with_inertia("forward_dynamics")
        return model.compute(
            dynamics.forward_dynamics, (model.nv,), ("q", "qd", "tau"), (q, qd, tau), wrenches, out=out
        )

    def inverse_dynamics(
        self,
        q: npt.ArrayLike,
        qd: npt.ArrayLike,
        qdd: npt.ArrayLike,
        wrenches: npt.ArrayLike | None = None,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """Joint forces that give the accelerations `qdd`, by the recursive Newton-Euler algorithm.

        Parameters and result as for `forward_dynamics`, with `qdd` and `tau` exchanged.

        References
        ----------
        Luh, Walker and Paul (1980); Featherstone (2008), section 5.3.

        Examples
        --------
        Holding a level rod takes m g l / 2:

        >>> import rbchain as rb
        >>> rod = rb.Model.serial_chain(1, length=0.5, mass=2.0, gravity=(0, -10, 0))
        >>> rod.inverse_dynamics([0.0], [0.0], [0.0])
        array([5.])
        """
        model = self.kernel_model
        return model.compute(
            dynamics.inverse_dynamics, (model.nv,), ("q", "qd", "qdd"), (q, qd, qdd), wrenches, out=out
        )

    def hybrid_dynamics(
        self,
        q: npt.ArrayLike,
        qd: npt.ArrayLike,
        tau: npt.ArrayLike,
        qdd: npt.ArrayLike,
        prescribed: npt.ArrayLike,
        wrenches: npt.ArrayLike | None = None,
        out: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Of each joint either the force or the acceleration is given; find the other, in one pass.

        Parameters
        ----------
        q, qd, tau, qdd : (..., nq) and (..., nv) arrays
            As for `forward_dynamics`; `qdd` counts where `prescribed` is true, `tau` where it is false. What does not
            count may be anything, even NaN.
        prescribed : (nv,) or (..., nv) array of bool
            Which accelerations are given: for all samples the same, or for each its own.
        wrenches : (..., n, 6) array, optional
        out : (..., 2, nv) array, optional
            The array for both results, as for `forward_dynamics`.

        Returns
        -------
        qdd, tau : (..., nv) arrays
            Both in full.

        References
        ----------
        Featherstone (2008), section 9.2.

        Examples
        --------
        The first joint of two is held, the second swings; holding takes a moment:

        >>> import rbchain as rb
        >>> arm = rb.Model.serial_chain(2)
        >>> qdd, tau = arm.hybrid_dynamics([0, 0], [0, 0], [0, 0], [0, 0], prescribed=[True, False])
        >>> qdd.round(6).tolist(), tau.round(6).tolist()
        ([0.0, -60.0], [0.1875, 0.0])
        """
        prescribed = bool_array("prescribed", prescribed, StateError)
        failing = np.zeros(1, bool)
        if not self.kernel_model.has_inertia and prescribed.shape[-1:] == (self.nv,):
            failing = self._without_inertia_where(prescribed)
        check_overlap(out, (prescribed,))
        states = [as_array(name, x) for name, x in zip(("q", "qd", "tau", "qdd"), (q, qd, tau, qdd), strict=True)]
        single = all(x.dtype == np.float32 for x in states)
        names = ("q", "qd", "tau", "qdd", "prescribed")
        states.append(prescribed.astype(np.float32 if single else np.float64))
        found = self.kernel_model.compute(
            dynamics.hybrid_dynamics, (2, self.nv), names, states, wrenches, scratch=self.nv, out=out
        )
        if failing.any():
            behind = (1,) * (found.ndim - 2 - failing.ndim)
            found[np.broadcast_to(failing.reshape((*failing.shape, *behind)), found.shape[:-2])] = np.nan
        return found[..., 0, :], found[..., 1, :]

    def _without_inertia_where(self, prescribed: np.ndarray) -> np.ndarray:
        """Which states (...) have accelerations that no inertia determines, of these (..., nv) joints prescribed."""
        extra = max(0, prescribed.ndim - 1 - len(self.batch_shape))
        found = np.zeros((), bool)
        for held in np.unique(prescribed.reshape(-1, prescribed.shape[-1]), axis=0):
            samples = self.kernel_model.samples_without_inertia("hybrid_dynamics", held)
            here = (prescribed == held).all(-1)
            found = found | (samples.reshape((*samples.shape, *(1,) * extra)) & here)
        return found

    def bias_forces(self, q: npt.ArrayLike, qd: npt.ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """Joint forces that keep the velocities as they are (qdd = 0): Coriolis, centrifugal and gravity, (..., nv).

        Examples
        --------
        >>> import rbchain as rb
        >>> arm = rb.Model.serial_chain(2)
        >>> bool(abs(arm.bias_forces([1, 2], [3, 4]) - arm.inverse_dynamics([1, 2], [3, 4], [0, 0])).max() == 0)
        True
        """
        return self.inverse_dynamics(q, qd, self._none_like("qd", qd), out=out)

    def gravity_forces(self, q: npt.ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """Joint forces that hold the mechanism at rest, (..., nv).

        Examples
        --------
        >>> import rbchain as rb
        >>> rb.Model.serial_chain(1, length=0.5, mass=2.0, gravity=(0, -10, 0)).gravity_forces([0.0])
        array([5.])
        """
        none = self._none_like("q", q)
        return self.inverse_dynamics(q, none, none, out=out)

    def passive_forces(self, q: npt.ArrayLike, qd: npt.ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """What springs, damping, friction and stops do at the joints (see `PassiveForces`), (..., nv).

        In water, with the drag of bodies that move through it at rest; a current only `simulate` knows. `simulate` adds
        these forces to what the motors give; the other quantities do not know of them: with the motors' forces
        tau, the accelerations are `forward_dynamics(q, qd, tau + passive_forces(q, qd))`.

        Examples
        --------
        >>> import rbchain as rb
        >>> rb.Model.serial_chain(2).vary(damping=[1.0, 2.0]).passive_forces([0.0, 0.0], [1.0, 1.0])
        array([-1., -2.])
        """
        return self.kernel_model.compute(dynamics.passive_forces, (self.nv,), ("q", "qd"), (q, qd), out=out)

    def _none_like(self, name: str, states: npt.ArrayLike) -> np.ndarray:
        """Velocities or accelerations of zero in the precision of an argument."""
        return np.zeros(self.nv, np.float32 if as_array(name, states).dtype == np.float32 else np.float64)

    def force_balance_residual(
        self,
        q: npt.ArrayLike,
        qd: npt.ArrayLike,
        tau: npt.ArrayLike,
        wrenches: npt.ArrayLike | None = None,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """What is left of the balance of forces on each body when `forward_dynamics` has found the motion.

        The force through the joint as the articulated-body algorithm has it, f = IA a + pA, along the joint's axis just
        what the motor gives, against Newton and Euler for the body alone: f - sum of the children's f
        - (I a + v x* I v - wrench). Zero but for rounding: the solver's own proof of its answer.

        Returns
        -------
        (..., n, 6) array, N and N m
            Force, then moment about the origin of the body's frame, in world axes.

        Examples
        --------
        >>> import numpy as np, rbchain as rb
        >>> chain = rb.Model.serial_chain(6)
        >>> bool(np.abs(chain.force_balance_residual(np.ones(6), np.ones(6), np.zeros(6))).max() < 1e-13)
        True
        """
        model = self.kernel_model.with_inertia("force_balance_residual")
        found = model.compute(dynamics.force_balance, (self.nv, 6), ("q", "qd", "tau"), (q, qd, tau), wrenches)
        return copied_to(
            out, found[..., self.kernel_model.dofs.last[:, None], [3, 4, 5, 0, 1, 2]], (q, qd, tau, wrenches)
        )

    def joint_reactions(
        self,
        q: npt.ArrayLike,
        qd: npt.ArrayLike,
        qdd: npt.ArrayLike,
        wrenches: npt.ArrayLike | None = None,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """What the joints transmit, and their bearings must bear.

        Parameters as for `inverse_dynamics`.

        Returns
        -------
        (..., n, 6) array, N and N m
            Of each body the force, then the moment about the origin of its frame, that its parent exerts on it through
            the joint; in the body's axes, in which the axis of a joint with one is fixed: along it, this is what the
            motor gives, less what its rotor takes. Pinocchio has the same in `data.f` after `rnea`; MuJoCo's
            `cfrc_int` refers to the centre of mass of the tree, in world axes.

        Examples
        --------
        A rod hinged at its end and held level hangs in the bearing with all its weight:

        >>> import rbchain as rb
        >>> rod = rb.Model.serial_chain(1, length=0.5, mass=2.0, gravity=(0, -10, 0))
        >>> rod.joint_reactions([0.0], [0.0], [0.0]).round(6).tolist()
        [[0.0, 20.0, 0.0, 0.0, 0.0, 5.0]]
        """
        shape = (self.n_bodies, 6)
        return self.kernel_model.compute(
            dynamics.joint_reactions, shape, ("q", "qd", "qdd"), (q, qd, qdd), wrenches, out=out
        )

    def power(
        self,
        q: npt.ArrayLike,
        qd: npt.ArrayLike,
        tau: npt.ArrayLike,
        wrenches: npt.ArrayLike | None = None,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """Rate at which the joint forces, and the wrenches, do work on the mechanism: that of its energy, (...), W.

        Examples
        --------
        >>> import rbchain as rb
        >>> float(rb.Model.serial_chain(2).power([0, 0], [1, 2], [3, 4]))
        11.0
        """
        given = (q, qd, tau, wrenches)
        (q, qd, tau, *_), dtype, _ = self.kernel_model.state_arguments.check(
            ("q", "qd", "tau"), (q, qd, tau), wrenches, of_samples=()
        )
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite stays in its sample
            power = np.einsum("...i,...i", tau, qd)
            if wrenches is not None:
                # the sum's order, and so its rounding, is that of the numbers in memory
                loads = np.ascontiguousarray(as_array("wrenches", wrenches), dtype)
                power = power + np.einsum("...ij,...ij", loads, self.body_velocities(q, qd))
        return copied_to(out, power, given)
