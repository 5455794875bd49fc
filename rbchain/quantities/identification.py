"""Dynamics as a linear function of the inertial parameters, and which of these can be identified."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..core.algorithms.regressors import PARAMETERS_OF_BODY
from ..drivers import derivatives
from ..errors import ModelError
from ..misspelt import SuggestsAttributes
from .attributes import Attributes

PARAMETER_NAMES = ("m", "mcx", "mcy", "mcz", "Jxx", "Jxy", "Jxz", "Jyy", "Jyz", "Jzz")
# A column of the regressor this small beside its own length, once those before it are taken out, is rounding.
NOTHING_NEW = 1e-8


@dataclass(frozen=True, eq=False)
class BaseParameters(SuggestsAttributes):
    """The combinations of inertial parameters that the motion depends on.

    Attributes
    ----------
    names : tuple of str
        Each combination in words, such as "link1.Jzz + 0.25*link2.m".
    columns : (b,) array of int
        The parameter that leads each combination: `regressor[..., columns]` is the regressor of the base parameters.
    projection : (b, 10 n) array
        Base parameters = projection @ inertial parameters.
    """

    names: tuple[str, ...]
    columns: np.ndarray
    projection: np.ndarray


class Identification(Attributes):
    """The part of Model for identifying inertial parameters."""

    @property
    def inertial_parameters(self) -> np.ndarray:
        """Of each body m, m c (3) and the tensor about its origin (xx xy xz yy yz zz), all in its axes: (..., 10 n).

        Pinocchio's order of the tensor is xx xy yy xz yz zz.
        """
        mass, cg = self.mass[..., None], np.broadcast_to(self.cg, (*self.batch_shape, self.n_bodies, 3))
        first_moment = mass * cg
        square = np.einsum("...i,...i", cg, cg)[..., None, None] * np.eye(3)
        tensor = self.inertia + mass[..., None] * (square - cg[..., :, None] * cg[..., None, :])
        six = tensor[..., [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]
        shape = (*self.batch_shape, self.n_bodies)
        parts = [np.broadcast_to(x, (*shape, x.shape[-1])) for x in (mass, first_moment, six)]
        return np.concatenate(parts, -1).reshape(*self.batch_shape, PARAMETERS_OF_BODY * self.n_bodies)

    def inverse_dynamics_regressor(
        self, q: npt.ArrayLike, qd: npt.ArrayLike, qdd: npt.ArrayLike, out: np.ndarray | None = None
    ) -> np.ndarray:
        """The matrix Y with tau = Y @ inertial_parameters, but for what the rotors take (armature qdd).

        Ten columns for each body, in the order of `inertial_parameters`, which has xz before yy where Pinocchio has
        them the other way round.

        Where samples differ: tau = einsum("...ij,...j", Y, inertial_parameters).

        Parameters as for `inverse_dynamics`, and `out`, an array for the result (new memory for a large batch takes
        time to be touched).

        Returns
        -------
        (..., nv, 10 n) array

        References
        ----------
        Atkeson, An and Hollerbach (1986), "Estimation of inertial parameters of manipulator loads and links".

        Examples
        --------
        >>> import numpy as np, rbchain as rb
        >>> arm = rb.Model.serial_chain(2)
        >>> q, qd, qdd = np.random.default_rng(0).normal(size=(3, 2))
        >>> tau = arm.inverse_dynamics_regressor(q, qd, qdd) @ arm.inertial_parameters
        >>> bool(abs(tau - arm.inverse_dynamics(q, qd, qdd)).max() < 1e-14)
        True
        """
        shape, names, states = (self.nv, PARAMETERS_OF_BODY * self.n_bodies), ("q", "qd", "qdd"), (q, qd, qdd)
        self.kernel_model.refuse_water("inverse_dynamics_regressor")
        return self.kernel_model.compute(derivatives.inverse_dynamics_regressor, shape, names, states, out=out)

    def kinetic_energy_regressor(
        self, q: npt.ArrayLike, qd: npt.ArrayLike, out: np.ndarray | None = None
    ) -> np.ndarray:
        """The vector (..., 10 n) whose product with the inertial parameters is the bodies' kinetic energy.

        Examples
        --------
        >>> import rbchain as rb
        >>> arm = rb.Model.serial_chain(1, length=2.0, mass=3.0)
        >>> float(arm.kinetic_energy_regressor([0.0], [1.0]) @ arm.inertial_parameters)
        2.0
        """
        shape = (PARAMETERS_OF_BODY * self.n_bodies,)
        self.kernel_model.refuse_water("kinetic_energy_regressor")
        return self.kernel_model.compute(derivatives.kinetic_energy_regressor, shape, ("q", "qd"), (q, qd), out=out)

    def potential_energy_regressor(self, q: npt.ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """The vector (..., 10 n) whose product with the inertial parameters is the potential energy.

        Examples
        --------
        >>> import numpy as np, rbchain as rb
        >>> arm = rb.Model.serial_chain(1, length=2.0, mass=3.0, gravity=(0, -10, 0))
        >>> float((arm.potential_energy_regressor([np.pi / 2]) @ arm.inertial_parameters).round(9))
        30.0
        """
        shape = (PARAMETERS_OF_BODY * self.n_bodies,)
        self.kernel_model.refuse_water("potential_energy_regressor")
        return self.kernel_model.compute(derivatives.potential_energy_regressor, shape, ("q",), (q,), out=out)

    def base_parameters(self, rng: np.random.Generator | int | None = 0) -> BaseParameters:
        """The fewest combinations of inertial parameters that inverse dynamics depends on.

        Found by the QR decomposition of the regressor at random states: a parameter whose column is a combination of
        those of parameters before it joins these.

        Parameters
        ----------
        rng : numpy Generator or seed
            Of the random states.

        Returns
        -------
        BaseParameters

        References
        ----------
        Gautier (1991), "Numerical calculation of the base inertial parameters of robots".

        Examples
        --------
        A planar chain shows its links' moments about their joints, and nothing else:

        >>> import rbchain as rb
        >>> rb.Model.serial_chain(2, length=0.5).base_parameters().names  # doctest: +NORMALIZE_WHITESPACE
        ('link1.mcx + 0.5*link2.m', 'link1.mcy', 'link1.Jzz + 0.25*link2.m', 'link2.mcx', 'link2.mcy', 'link2.Jzz')
        """
        if self.batch_shape:
            raise ModelError(f"the samples of this model differ, batch_shape {self.batch_shape}; expected one model")
        rng = np.random.default_rng(rng)
        samples = max(20, 2 * PARAMETERS_OF_BODY * self.n_bodies // self.nv + 1)
        q, qd = self.random_state(rng, (samples,))
        W = self.inverse_dynamics_regressor(q, qd, rng.normal(size=qd.shape)).reshape(samples * self.nv, -1)
        import scipy.linalg

        length = np.linalg.norm(W, axis=0)
        seen = length > NOTHING_NEW * length.max()
        scaled = W / np.where(seen, length, 1.0)
        pivots = np.abs(np.diag(scipy.linalg.qr(scaled, mode="r")[0]))
        leads = seen.copy()
        leads[: pivots.size] &= pivots > NOTHING_NEW
        columns = np.flatnonzero(leads)
        projection = np.linalg.lstsq(scaled[:, columns], scaled, rcond=None)[0]
        projection *= np.where(seen, length, 0.0) / length[columns, None]
        projection[np.abs(projection) < NOTHING_NEW] = 0.0
        labels = [f"{body}.{name}" for body in self.body_names for name in PARAMETER_NAMES]
        return BaseParameters(tuple(_as_text(row, labels) for row in projection), columns, projection)


def _as_text(row: np.ndarray, labels: Sequence[str]) -> str:
    """A sum of parameters, such as "link1.Jzz + 0.25*link2.m"."""
    text = ""
    for label, weight in zip(labels, row, strict=True):
        if weight != 0.0:
            size = "" if abs(abs(weight) - 1.0) < NOTHING_NEW else f"{abs(weight):.6g}*"
            text += (" - " if weight < 0.0 else " + " if text else "") + size + label
    return text.strip()
