"""The dynamics of a planar two-link manipulator with a payload in closed form, to verify the general solver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from ..common.real_arrays import FloatArray, finite_number, real_array

# SciPy's integrators replace a smaller rtol by one of their own.
SMALLEST_RTOL = 1e-13


@dataclass(frozen=True)
class TwoLink:
    """A planar arm of two uniform thin rods, hinged to the ground and to each other, with a point mass at the tip.

    Both joints turn about z. q1 is the angle from the x axis to the first rod, q2 the angle from the first rod to the
    second. States may have any batch shape (..., 2).

    Parameters
    ----------
    l1, l2 : float, m
        Lengths of the links.
    m1, m2 : float, kg
        Masses of the links.
    mp : float, kg
        Mass of the payload.
    g : float, m/s^2
        Gravitational acceleration along -y; a negative number acts along +y.
    degrees : bool
        Whether positions, velocities and accelerations are in degrees. Torques are always in N m.

    Attributes
    ----------
    r1, r2, r3, r4, r5, r6 : float
        The constants of the equations of motion, multiplied by four. With c1 = cos q1, c12 = cos(q1 + q2) and so on:

        4 tau1 = (r2 + r4 c2) qdd1 + (r6 + r5 c2) qdd2 - (r4 qd1 + r5 qd2) s2 qd2 + r1 c1 + r3 c12
        4 tau2 = (r6 + r5 c2) qdd1 + r6 qdd2 + r5 s2 qd1^2 + r3 c12

    Notes
    -----
    The constants come from a C program of June 1990 (a thesis on the two-link arm; Macsyma derived the equations).
    The results agree with that program, which differs from this class as follows:

    * It uses degrees, and its gravity acts along +y: its GRAVITY is -g here.
    * Its pi has ten digits, so its results differ in the tenth digit.
    * Its comments give torques in N/m; the unit is N m.
    * Its dynamics() is meant to take five steps, each a fifth of the duration. It tests `time <= end` after adding the
      fifths. Unless round-off makes their sum larger than the end, it takes a sixth step and returns the state at 1.2
      times the duration. This happens for 70 % of all durations, including 1 s and 0.01 s but not 0.1 s.
    * The error tolerance of dynamics() is fixed at 1e-5.

    Examples
    --------
    The torques that hold the arm horizontal: the shoulder carries both rods, the elbow one.

    >>> arm = TwoLink(l1=1.0, l2=1.0, m1=2.0, m2=2.0, g=10.0)
    >>> arm.inverse_dynamics([0, 0], [0, 0], [0, 0]).tolist()
    [40.0, 10.0]
    >>> arm.forward_dynamics([0, 0], [0, 0], [40, 10]).tolist()
    [0.0, 0.0]
    """

    l1: float
    l2: float
    m1: float
    m2: float
    mp: float = 0.0
    g: float = 9.81
    degrees: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.degrees, (bool, np.bool_)):
            raise ValueError(f"degrees is {self.degrees!r}; expected True or False")
        for field in fields(self)[:-1]:
            bound = {"mp": {"least": 0.0}, "g": {}}.get(field.name, {"above": 0.0})
            number = finite_number(field.name, getattr(self, field.name), ValueError, **bound)
            object.__setattr__(self, field.name, number)

    @property
    def i1(self) -> float:
        """Inertia of the first link about its center of mass, kg m^2."""
        return self.m1 * self.l1**2 / 12

    @property
    def i2(self) -> float:
        """Inertia of the second link about its center of mass, kg m^2."""
        return self.m2 * self.l2**2 / 12

    @property
    def r1(self) -> float:
        return self.g * self.l1 * (4 * self.m2 + 2 * self.m1 + 4 * self.mp)

    @property
    def r2(self) -> float:
        own = self.m1 * self.l1**2 + 4 * self.i2 + 4 * self.i1
        return self.mp * (4 * self.l2**2 + 4 * self.l1**2) + self.m2 * (self.l2**2 + 4 * self.l1**2) + own

    @property
    def r3(self) -> float:
        return self.g * self.l2 * (2 * self.m2 + 4 * self.mp)

    @property
    def r4(self) -> float:
        return self.l1 * self.l2 * (8 * self.mp + 4 * self.m2)

    @property
    def r5(self) -> float:
        return self.l1 * self.l2 * (2 * self.m2 + 4 * self.mp)

    @property
    def r6(self) -> float:
        return self.l2**2 * (self.m2 + 4 * self.mp) + 4 * self.i2

    def inverse_dynamics(self, q: npt.ArrayLike, qd: npt.ArrayLike, qdd: npt.ArrayLike) -> FloatArray:
        """Compute the torques (..., 2), N m, that produce the accelerations qdd."""
        q, qd, qdd = self._radians(self._states(q=q, qd=qd, qdd=qdd))
        (q1, q2), (qd1, qd2), (qdd1, qdd2) = (np.moveaxis(x, -1, 0) for x in (q, qd, qdd))
        c, s = self.r5 * np.cos(q2), self.r5 * np.sin(q2)
        # in terms of the absolute velocity qd1 + qd2 of the second link, using r4 = 2 r5
        second = self.r6 * (qdd1 + qdd2) + c * qdd1 + s * qd1**2 + self.r3 * np.cos(q1 + q2)
        first = self._first_link_inertia() * qdd1 + c * (qdd1 + qdd2) - s * (qd1 + qd2) ** 2 + self.r1 * np.cos(q1)
        return np.stack([first + second, second], -1) / 4

    def forward_dynamics(self, q: npt.ArrayLike, qd: npt.ArrayLike, tau: npt.ArrayLike) -> FloatArray:
        """Compute the accelerations (..., 2) due to the torques tau."""
        q, qd, tau = self._states(q=q, qd=qd, tau=tau)
        q, qd = self._radians((q, qd))
        qdd = self._accelerations(q, qd, tau)
        return np.rad2deg(qdd) if self.degrees else qdd

    def step(
        self, q: npt.ArrayLike, qd: npt.ArrayLike, tau: npt.ArrayLike, duration: float, rtol: float = 1e-10
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Compute the motion under constant torques, by SciPy's eighth-order Runge-Kutta method (DOP853).

        Each state of a batch is integrated with its own step lengths. The last step ends after `duration`.

        Parameters
        ----------
        q, qd : (..., 2) arrays, rad or degrees, and per second
        tau : (..., 2) array, N m
        duration : float, s
        rtol : float
            Tolerance of the error of a step: rtol (1 + abs(y)), with y in rad and rad/s. From 1e-13 to less than 1.

        Returns
        -------
        q, qd, qdd : (..., 2) arrays
            State and accelerations after `duration`. q may exceed one turn.

        Raises
        ------
        ValueError
            If an argument has a wrong shape, type or value.
        RuntimeError
            If the integrator fails.

        Examples
        --------
        >>> arm = TwoLink(l1=1.0, l2=1.0, m1=2.0, m2=2.0, degrees=True)
        >>> q, qd, qdd = arm.step([-90, 10], [0, 0], [0, 0], duration=0.5)
        >>> q.round(6).tolist()
        [-86.762693, -7.739124]
        """
        from scipy.integrate import solve_ivp

        duration = finite_number("duration", duration, ValueError, above=0.0)
        rtol = finite_number("rtol", rtol, ValueError, least=SMALLEST_RTOL)
        if rtol >= 1.0:
            raise ValueError(f"rtol is {rtol!r}; expected a number below 1")
        q, qd, tau = self._states(q=q, qd=qd, tau=tau)
        starts = np.concatenate(self._radians((q, qd)), -1).reshape(-1, 4)
        ends = np.empty_like(starts)
        for start, torques, end in zip(starts, tau.reshape(-1, 2), ends, strict=True):

            def rate(_: float, state: FloatArray, torques: FloatArray = torques) -> FloatArray:
                return np.concatenate([state[2:], self._accelerations(state[:2], state[2:], torques)])

            found = solve_ivp(rate, (0.0, duration), start, method="DOP853", rtol=rtol, atol=rtol, t_eval=[duration])
            if not found.success:
                raise RuntimeError(
                    f"the integrator failed for the initial state {start.tolist()}: {found.message} Use a shorter "
                    "duration or a larger rtol"
                )
            end[:] = found.y[:, -1]
        ends = ends.reshape(*q.shape[:-1], 4)
        q, qd = ends[..., :2], ends[..., 2:]
        qdd = self._accelerations(q, qd, tau)
        return (np.rad2deg(q), np.rad2deg(qd), np.rad2deg(qdd)) if self.degrees else (q, qd, qdd)

    def _first_link_inertia(self) -> float:
        """Compute r2 - r6 without a subtraction: the inertia of link 1 with the other masses at its end, times four."""
        return self.l1**2 * (self.m1 + 4 * (self.m2 + self.mp)) + 4 * self.i1

    def _determinant(self, s2: FloatArray) -> FloatArray:
        """Compute r6 (r2 - r6) - (r5 c2)^2, 16 times the determinant of the mass matrix, from non-negative terms."""
        tip = self.m2 / 3 + self.mp
        along = tip * self.m1 / 3 + self.m2**2 / 12 + self.m2 * self.mp / 3
        return 16 * (self.l1 * self.l2) ** 2 * along + (self.r5 * s2) ** 2

    def _accelerations(self, q: FloatArray, qd: FloatArray, tau: FloatArray) -> FloatArray:
        """Compute accelerations, rad/s^2, from a state in rad and rad/s.

        The unknowns are qdd1 and qdd1 + qdd2. The first equation minus the second is
        (r2 - r6) qdd1 + r5 c2 (qdd1 + qdd2) = 4 (tau1 - tau2) + r5 s2 (qd1 + qd2)^2 - r1 c1.
        """
        (q1, q2), (qd1, qd2), (tau1, tau2) = (np.moveaxis(x, -1, 0) for x in (q, qd, tau))
        c, s2 = self.r5 * np.cos(q2), np.sin(q2)
        first = 4 * (tau1 - tau2) + self.r5 * s2 * (qd1 + qd2) ** 2 - self.r1 * np.cos(q1)
        second = 4 * tau2 - self.r5 * s2 * qd1**2 - self.r3 * np.cos(q1 + q2)
        determinant = self._determinant(s2)
        qdd1 = (self.r6 * first - c * second) / determinant
        absolute = (self._first_link_inertia() * second - c * first) / determinant
        return np.stack([qdd1, absolute - qdd1], -1)

    def _states(self, **states: npt.ArrayLike) -> Sequence[FloatArray]:
        """Return the arguments as arrays of one shape (..., 2). A ValueError names the argument that does not fit."""
        found = []
        for name, value in states.items():
            array = real_array(name, value, ValueError)
            if array.shape[-1:] != (2,):
                raise ValueError(f"{name} has shape {array.shape}; expected (..., 2)")
            if not np.isfinite(array).all():
                raise ValueError(f"{name} is {array.tolist()}; expected finite numbers")
            found.append(array)
        try:
            return np.broadcast_arrays(*found)
        except ValueError:
            shapes = {name: array.shape for name, array in zip(states, found, strict=True)}
            raise ValueError(
                f"the shapes {shapes} do not fit together; expected (..., 2) with the same batch shape"
            ) from None

    def _radians(self, states: Sequence[FloatArray]) -> list[FloatArray]:
        return [np.deg2rad(x) for x in states] if self.degrees else list(states)
