"""Regressors, which make the dynamics linear in the inertial parameters, and the base parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..common.misspelled import SuggestsAttributes
from ..common.pickles import PickledByName
from ..common.real_arrays import FloatArray
from ..core.algorithms.regressors import PARAMETERS_OF_BODY
from ..drivers import derivatives
from ..errors import ModelError
from .attributes import Attributes
from .states import generator_of

PARAMETER_NAMES = ("m", "mcx", "mcy", "mcz", "Jxx", "Jxy", "Jxz", "Jyy", "Jyz", "Jzz")
#: A column of the regressor depends on the columns before it if the rest has a smaller share of its norm than this.
DEPENDENT_SHARE = 1e-8


@dataclass(frozen=True, eq=False)
class BaseParameters(PickledByName, SuggestsAttributes):
    """The combinations of inertial parameters that determine the dynamics.

    Attributes
    ----------
    names : tuple of str
        Each combination as text, such as "link1.Jzz + 0.25*link2.m".
    columns : (b,) array of int
        The leading parameter of each combination: `regressor[..., columns]` is the regressor of the base parameters.
    projection : (b, 10 n) array
        Base parameters = projection @ inertial parameters.
    """

    names: tuple[str, ...]
    columns: np.ndarray
    projection: FloatArray


class Identification(Attributes):
    """Methods of Model for the identification of inertial parameters."""

    @property
    def inertial_parameters(self) -> FloatArray:
        """The ten inertial parameters of each body, in body axes: a (..., 10 n) array.

        They are the mass m (kg), m times cg (3 values, kg m) and the inertia tensor about the origin of the body's
        frame (xx, xy, xz, yy, yz, zz; kg m^2). Pinocchio orders the tensor xx, xy, yy, xz, yz, zz.
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
        self, q: npt.ArrayLike, qd: npt.ArrayLike, qdd: npt.ArrayLike, *, out: FloatArray | None = None
    ) -> FloatArray:
        """Compute the regressor Y of inverse dynamics: tau = Y @ inertial_parameters.

        The inertial forces of the rotors, armature qdd, are not included. If samples differ in their parameters,
        tau = einsum("...ij,...j", Y, inertial_parameters). With closed loops, tau includes the forces of the
        constraints: tau + J^T lambda = Y @ inertial_parameters.

        Parameters
        ----------
        q, qd, qdd : (..., nq), (..., nv) and (..., nv) arrays
        out : array, optional
            As for `forward_dynamics`.

        Returns
        -------
        (..., nv, 10 n) array
            Ten columns for each body, in the order of `inertial_parameters`. Pinocchio has xz and yy in the other
            order.

        Raises
        ------
        ArgumentError
            As for `inverse_dynamics`, or if the model is in water.

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
        self, q: npt.ArrayLike, qd: npt.ArrayLike, *, out: FloatArray | None = None
    ) -> FloatArray:
        """Compute the regressor of the kinetic energy: its product with `inertial_parameters` is the energy.

        The energy of the rotors is not included.

        Parameters
        ----------
        q, qd : (..., nq) and (..., nv) arrays
        out : array, optional
            As for `forward_dynamics`.

        Returns
        -------
        (..., 10 n) array

        Raises
        ------
        ArgumentError
            As for `inverse_dynamics`, or if the model is in water.

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

    def potential_energy_regressor(self, q: npt.ArrayLike, *, out: FloatArray | None = None) -> FloatArray:
        """Compute the regressor of the potential energy: its product with `inertial_parameters` is the energy.

        Parameters
        ----------
        q : (..., nq) array
        out : array, optional
            As for `forward_dynamics`.

        Returns
        -------
        (..., 10 n) array

        Raises
        ------
        ArgumentError
            As for `inverse_dynamics`, or if the model is in water.

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
        """Find the smallest set of combinations of inertial parameters on which inverse dynamics depends.

        The method is a QR decomposition of the regressor at random states. If the column of a parameter is a linear
        combination of the columns before it, the parameter is added to their combinations. Constraints are ignored: the
        result is the same as for `open_tree()`.

        Parameters
        ----------
        rng : numpy Generator or seed
            Source of the random states.

        Returns
        -------
        BaseParameters

        Raises
        ------
        ModelError
            If the samples of the model differ.

        References
        ----------
        Gautier (1991), "Numerical calculation of the base inertial parameters of robots".

        Examples
        --------
        The motion of a planar chain depends on six combinations of its twenty parameters:

        >>> import rbchain as rb
        >>> rb.Model.serial_chain(2, length=0.5).base_parameters().names  # doctest: +NORMALIZE_WHITESPACE
        ('link1.mcx + 0.5*link2.m', 'link1.mcy', 'link1.Jzz + 0.25*link2.m', 'link2.mcx', 'link2.mcy', 'link2.Jzz')
        """
        if self.batch_shape:
            raise ModelError(
                f"base_parameters requires one set of parameters, but the model has batch_shape {self.batch_shape}; "
                "use model[i] or model.nominal"
            )
        rng = generator_of(rng)
        samples = max(20, 2 * PARAMETERS_OF_BODY * self.n_bodies // self.nv + 1)
        q, qd = self.random_state(rng, (samples,))
        W = self.inverse_dynamics_regressor(q, qd, rng.normal(size=qd.shape)).reshape(samples * self.nv, -1)
        import scipy.linalg

        length = np.linalg.norm(W, axis=0)
        seen = length > DEPENDENT_SHARE * length.max()
        scaled = W / np.where(seen, length, 1.0)
        pivots = np.abs(np.diag(scipy.linalg.qr(scaled, mode="r")[0]))
        leads = seen.copy()
        leads[: pivots.size] &= pivots > DEPENDENT_SHARE
        columns = np.flatnonzero(leads)
        projection = np.linalg.lstsq(scaled[:, columns], scaled, rcond=None)[0]
        projection *= np.where(seen, length, 0.0) / length[columns, None]
        projection[np.abs(projection) < DEPENDENT_SHARE] = 0.0
        labels = [f"{body}.{name}" for body in self.body_names for name in PARAMETER_NAMES]
        return BaseParameters(tuple(_as_text(row, labels) for row in projection), columns, projection)


def _as_text(row: FloatArray, labels: Sequence[str]) -> str:
    """Return a sum of parameters as text, such as "link1.Jzz + 0.25*link2.m"."""
    text = ""
    for label, weight in zip(labels, row, strict=True):
        if weight != 0.0:
            size = "" if abs(abs(weight) - 1.0) < DEPENDENT_SHARE else f"{abs(weight):.6g}*"
            text += (" - " if weight < 0.0 else " + " if text else "") + size + label
    return text.strip()
