"""Forces and accelerations of joints. Each method passes its states and one driver to the kernel model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..common.real_arrays import FLOAT64, FloatArray, bool_array, true_or_false
from ..drivers import dynamics
from ..errors import ArgumentError
from ..model.arguments import as_array, check_overlap
from .attributes import Attributes


class Dynamics(Attributes):
    """Methods of Model that compute forces and accelerations of joints."""

    def forward_dynamics(
        self,
        q: npt.ArrayLike,
        qd: npt.ArrayLike,
        tau: npt.ArrayLike = 0.0,
        wrenches: npt.ArrayLike | None = None,
        *,
        passive: bool = False,
        out: FloatArray | None = None,
    ) -> FloatArray:
        """Compute joint accelerations from joint forces, by the articulated-body algorithm.

        `accelerations` also includes drives, springs and other forces of a simulation.

        Parameters
        ----------
        q, qd : (..., nq) and (..., nv) arrays, rad or m, and rad/s or m/s
            Positions and velocities. With closed loops, they must satisfy the constraints, which is not checked; see
            `assemble`.
        tau : float or (..., nv) array, N m or N
            Joint forces. The joint force of a screw is its moment plus pitch times force along the axis.
        wrenches : (..., n, 6) array, N and N m, optional
            External wrench on each body: force, then moment about the origin of the body's frame, both in world axes.
        passive : bool
            Whether passive joint forces (`passive_forces`) are included, as they are in `simulate`.
        out : array, optional
            The array for the result, of the same shape and precision. It must not share memory with the arguments. For
            large batches this is faster, because allocating new memory takes time.

        Returns
        -------
        (..., nv) array, rad/s^2 or m/s^2

        Raises
        ------
        ArgumentError
            If a shape does not fit, an argument is not real or is masked, or the norm of a quaternion differs from 1 by
            more than 1e-6 (1e-5 in float32). Within this tolerance, the quaternion is normalized.
        ModelError
            If the model has `bodies_without_inertia`. If only some samples have such bodies, the results of those
            samples are NaN.

        References
        ----------
        Featherstone (2008), *Rigid Body Dynamics Algorithms*, section 7.3.

        Examples
        --------
        A horizontal rod, hinged at one end and released, has the angular acceleration 3 g / (2 l):

        >>> import rbchain as rb
        >>> rod = rb.Model.serial_chain(1, length=0.25, gravity=(0, -10, 0))
        >>> rod.forward_dynamics([0.0], [0.0])
        array([-60.])

        A damper of 0.01 N m s brakes it when it moves at 1 rad/s:

        >>> damped = rod.replace(damping=[0.01])
        >>> damped.forward_dynamics([0.0], [1.0], passive=True) - damped.forward_dynamics([0.0], [1.0])
        array([-4.8])
        """
        if passive is not False or type(tau) is not np.ndarray or tau.ndim == 0:  # not for each single state
            tau = self._joint_forces(q, qd, tau, passive)
        model = self.kernel_model.for_dynamics("forward_dynamics")
        driver, given = model.forward_dynamics_driver
        return model.compute(driver, (model.nv,), ("q", "qd", "tau"), (q, qd, tau), wrenches, given=given, out=out)

    def inverse_dynamics(
        self,
        q: npt.ArrayLike,
        qd: npt.ArrayLike,
        qdd: npt.ArrayLike,
        wrenches: npt.ArrayLike | None = None,
        *,
        actuated: Sequence[str] | None = None,
        passive: bool = False,
        out: FloatArray | None = None,
    ) -> FloatArray:
        """Compute the joint forces for given accelerations, by the recursive Newton-Euler algorithm.

        Parameters
        ----------
        q, qd, qdd : (..., nq), (..., nv) and (..., nv) arrays
            Positions, velocities and accelerations.
        wrenches, passive, out
            As for `forward_dynamics`. With `passive`, the result contains only the forces that are necessary in
            addition to the passive ones.
        actuated : sequence of str
            Names of the joints with motors. Required with closed loops; omit it for an open tree.

        Returns
        -------
        (..., nv) array, N m or N
            Joint forces, without the passive forces (`PassiveForces`). With closed loops, the result contains only the
            actuated degrees of freedom, in the order of `actuated`. If there are more motors than degrees of freedom,
            the forces have the minimum norm.

        Raises
        ------
        ArgumentError
            As for `forward_dynamics`; or if the actuated joints of a closed loop cannot cause the accelerations.
        ModelError
            If `actuated` is missing with closed loops, given for an open tree, or contains an unknown name.

        References
        ----------
        Luh, Walker and Paul (1980); Featherstone (2008), section 5.3.

        Examples
        --------
        The moment m g l / 2 holds a horizontal rod:

        >>> import rbchain as rb
        >>> rod = rb.Model.serial_chain(1, length=0.5, mass=2.0, gravity=(0, -10, 0))
        >>> rod.inverse_dynamics([0.0], [0.0], [0.0])
        array([5.])
        """
        if self.kernel_model.constraint_rows:
            self.kernel_model.refuse_compliance("inverse_dynamics")
            return self._forces_of_actuated_joints(q, qd, qdd, wrenches, actuated, passive, out)
        self.kernel_model.refuse_actuated(actuated)
        tau = self._inverse_dynamics_of_tree(q, qd, qdd, wrenches, out)
        if true_or_false("passive", passive, ArgumentError):
            tau -= self.passive_forces(q, qd)
        return tau

    def _inverse_dynamics_of_tree(
        self,
        q: npt.ArrayLike,
        qd: npt.ArrayLike,
        qdd: npt.ArrayLike,
        wrenches: npt.ArrayLike | None = None,
        out: FloatArray | None = None,
    ) -> FloatArray:
        """Compute H qdd + h, the joint forces without the forces of constraints."""
        model = self.kernel_model
        if out is None and wrenches is None:
            result = model.single_calls[dynamics.inverse_dynamics](q, qd, qdd)
            if result is not None:
                return result
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
        *,
        passive: bool = False,
        out: FloatArray | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Compute the unknown joint forces and accelerations, where one of the two is given for each degree of freedom.

        Parameters
        ----------
        q, qd, tau, qdd : (..., nq) and (..., nv) arrays
            As for `forward_dynamics`. `qdd` is used where `prescribed` is true, and `tau` where it is false. Values
            that are not used may be arbitrary, including NaN.
        prescribed : (nv,) or (..., nv) array of bool
            Degrees of freedom whose accelerations are given: the same for all samples, or different for each.
        wrenches, passive
            As for `forward_dynamics`. The joint forces of the result do not contain passive forces.
        out : (..., 2, nv) array, optional
            The array for both results, as for `forward_dynamics`.

        Returns
        -------
        qdd, tau : (..., nv) arrays
            Accelerations and joint forces of all degrees of freedom. With closed loops, the constraints determine the
            accelerations that depend on the prescribed ones. If the constraints couple several prescribed degrees of
            freedom, their forces are not unique; the result has the minimum norm.

        Raises
        ------
        ArgumentError
            As for `forward_dynamics`, or if `prescribed` is not an array of bool, or if the prescribed accelerations
            contradict the constraints of a closed loop.
        ModelError
            If inertia does not determine the accelerations that are not prescribed; with closed loops, as for
            `forward_dynamics`. If this concerns only some samples, their results are NaN.

        References
        ----------
        Featherstone (2008), section 9.2.

        Examples
        --------
        The first of two joints stays in place, while the second accelerates freely:

        >>> import rbchain as rb
        >>> arm = rb.Model.serial_chain(2)
        >>> qdd, tau = arm.hybrid_dynamics([0, 0], [0, 0], [0, 0], [0, 0], prescribed=[True, False])
        >>> qdd.round(6).tolist(), tau.round(6).tolist()
        ([0.0, -60.0], [0.1875, 0.0])
        """
        prescribed = bool_array("prescribed", prescribed, ArgumentError)
        if self.kernel_model.constraint_rows:
            self.kernel_model.refuse_compliance("hybrid_dynamics", "Use drives that prescribe a motion in simulate")
            tau = self._joint_forces(q, qd, tau, False)
            found = self._constrained_hybrid_dynamics((q, qd, tau, qdd), prescribed, wrenches, passive, out)
            return found[..., 0, :], found[..., 1, :]
        failing = np.zeros(1, bool)
        if not self.kernel_model.has_inertia and prescribed.shape[-1:] == (self.nv,):
            failing = self._without_inertia_where(prescribed)
        check_overlap(out, (prescribed,))
        tau = self._joint_forces(q, qd, tau, passive)
        states = [as_array(name, x) for name, x in zip(("q", "qd", "tau", "qdd"), (q, qd, tau, qdd), strict=True)]
        single = all(x.dtype == np.float32 for x in states)
        names = ("q", "qd", "tau", "qdd", "prescribed")
        states.append(prescribed.astype(np.float32 if single else np.float64))
        found = self.kernel_model.compute(
            dynamics.hybrid_dynamics, (2, self.nv), names, states, wrenches, scratch=self.nv, out=out
        )
        if failing.any():
            found[np.broadcast_to(failing, found.shape[:-2])] = np.nan
        if passive:
            found[..., 1, :] -= self.passive_forces(q, qd)
        return found[..., 0, :], found[..., 1, :]

    def _without_inertia_where(self, prescribed: np.ndarray) -> np.ndarray:
        """Find the states (...) in which inertia does not determine the accelerations that are not prescribed."""
        found = np.zeros((), bool)
        for held in np.unique(prescribed.reshape(-1, prescribed.shape[-1]), axis=0):
            samples = self.kernel_model.samples_without_inertia("hybrid_dynamics", held)
            here = (prescribed == held).all(-1)
            found = found | (samples & here)
        return found

    def bias_forces(self, q: npt.ArrayLike, qd: npt.ArrayLike, *, out: FloatArray | None = None) -> FloatArray:
        """Compute the joint forces for zero acceleration: Coriolis, centrifugal and gravity forces.

        Parameters
        ----------
        q, qd : (..., nq) and (..., nv) arrays
        out : array, optional
            As for `forward_dynamics`.

        Returns
        -------
        (..., nv) array, N m or N

        Examples
        --------
        >>> import rbchain as rb
        >>> arm = rb.Model.serial_chain(2)
        >>> bool(abs(arm.bias_forces([1, 2], [3, 4]) - arm.inverse_dynamics([1, 2], [3, 4], [0, 0])).max() == 0)
        True
        """
        model = self.kernel_model
        if out is None:
            result = model.single_calls[dynamics.inverse_dynamics](q, qd, model.zeros)
            if result is not None:
                return result
        return self._inverse_dynamics_of_tree(q, qd, self._none_like("qd", qd), out=out)

    def gravity_forces(self, q: npt.ArrayLike, *, out: FloatArray | None = None) -> FloatArray:
        """Compute the joint forces that hold the mechanism at rest against gravity.

        Parameters
        ----------
        q : (..., nq) array
        out : array, optional
            As for `forward_dynamics`.

        Returns
        -------
        (..., nv) array, N m or N

        Examples
        --------
        >>> import rbchain as rb
        >>> rb.Model.serial_chain(1, length=0.5, mass=2.0, gravity=(0, -10, 0)).gravity_forces([0.0])
        array([5.])
        """
        none = self._none_like("q", q)
        return self._inverse_dynamics_of_tree(q, none, none, out=out)

    def passive_forces(self, q: npt.ArrayLike, qd: npt.ArrayLike, *, out: FloatArray | None = None) -> FloatArray:
        """Compute the passive joint forces: springs, damping, friction and stops (see `PassiveForces`).

        For bodies in water they include the drag in still water. Only `simulate` takes a current into account.
        `simulate` adds passive forces to the actuator forces, and so do other methods with `passive=True`:
        `forward_dynamics(q, qd, tau, passive=True)` is `forward_dynamics(q, qd, tau + passive_forces(q, qd))`.

        Parameters
        ----------
        q, qd : (..., nq) and (..., nv) arrays
        out : array, optional
            As for `forward_dynamics`.

        Returns
        -------
        (..., nv) array, N m or N

        Examples
        --------
        >>> import rbchain as rb
        >>> rb.Model.serial_chain(2).replace(damping=[1.0, 2.0]).passive_forces([0.0, 0.0], [1.0, 1.0])
        array([-1., -2.])
        """
        return self.kernel_model.compute(dynamics.passive_forces, (self.nv,), ("q", "qd"), (q, qd), out=out)

    def _joint_forces(self, q: npt.ArrayLike, qd: npt.ArrayLike, tau: npt.ArrayLike, passive: bool) -> FloatArray:
        """Return the joint forces `tau`, a number or an array, and the passive forces if they are included."""
        tau = tau if isinstance(tau, np.ndarray) else as_array("tau", tau)
        if tau.ndim == 0:
            single = as_array("q", q).dtype == as_array("qd", qd).dtype == np.float32
            tau = np.full(self.nv, as_array("tau", tau), np.float32 if single else np.float64)
        if true_or_false("passive", passive, ArgumentError):
            tau = as_array("tau", tau)
            states = [x if x.dtype == tau.dtype else x.astype(float) for x in (as_array("q", q), as_array("qd", qd))]
            return tau + self.passive_forces(*states)
        return tau

    def _none_like(self, name: str, states: npt.ArrayLike) -> FloatArray:
        """Return velocities or accelerations of zero, in the precision of an argument."""
        if type(states) is np.ndarray and states.dtype is FLOAT64:
            return self.kernel_model.zeros
        return np.zeros(self.nv, np.float32 if as_array(name, states).dtype == np.float32 else np.float64)
