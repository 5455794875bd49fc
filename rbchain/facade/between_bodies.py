"""Forces between bodies in given states. Each method passes its states and one driver to the kernel model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy.typing as npt

from ..acting.between_bodies import Bushing, SpringDamper, is_between_bodies
from ..acting.flatten_between_bodies import compute_between_bodies
from ..common.real_arrays import FloatArray, excerpt
from ..drivers import between_bodies
from ..errors import ArgumentError
from ..model.arguments import as_array, copied_to, with_batch
from .attributes import Attributes

if TYPE_CHECKING:
    from .model import Model


class ForcesBetweenBodies(Attributes):
    """Methods of Model that compute the forces of springs and bushings between bodies."""

    def wrenches_between_bodies(
        self,
        q: npt.ArrayLike,
        qd: npt.ArrayLike,
        forces: Sequence[SpringDamper | Bushing],
        *,
        out: FloatArray | None = None,
    ) -> FloatArray:
        """Compute the wrenches that springs and bushings exert on the bodies.

        `forward_dynamics`, `power`, `joint_reactions` and the other functions that take `wrenches` accept the result.

        Parameters
        ----------
        q, qd : (..., nq) and (..., nv) arrays
        forces : sequence of SpringDamper and Bushing
            Their arrays have the batch shape of the states or, after `vary`, the batch shape of the model.
        out : array, optional
            As for `forward_dynamics`.

        Returns
        -------
        (..., n, 6) array, N and N m
            Force, then moment about the origin of the body's frame, in world axes.

        Raises
        ------
        ArgumentError
            If a body does not exist, both ends are fixed to the same body, values are invalid, or shapes do not fit.

        Examples
        --------
        >>> import rbchain as rb
        >>> arm = rb.Model.serial_chain(2, length=1.0)
        >>> spring = rb.SpringDamper(None, "link2", point_a=(0, 0, 0), point_b=(1, 0, 0), stiffness=5.0)
        >>> arm.wrenches_between_bodies([0, 0], [0, 0], [spring])[1].tolist()
        [-10.0, 0.0, 0.0, 0.0, 0.0, 0.0]
        """
        return self._between(between_bodies.wrenches_between_bodies, (self.n_bodies, 6), q, qd, forces, out)

    def elastic_energy(
        self, q: npt.ArrayLike, forces: Sequence[SpringDamper | Bushing], *, out: FloatArray | None = None
    ) -> FloatArray:
        """Compute the elastic energy of springs and bushings.

        Parameters
        ----------
        q : (..., nq) array
        forces, out
            As for `wrenches_between_bodies`.

        Returns
        -------
        (...) array, J
            The sum over all forces: stiffness (L - rest_length)^2 / 2 of a spring, x^T K x / 2 of a bushing.

        Raises
        ------
        ArgumentError
            As for `wrenches_between_bodies`.

        Examples
        --------
        >>> import rbchain as rb
        >>> arm = rb.Model.serial_chain(2, length=1.0)
        >>> spring = rb.SpringDamper(None, "link2", point_a=(0, 0, 0), point_b=(1, 0, 0), stiffness=5.0)
        >>> float(arm.elastic_energy([0, 0], [spring]))
        10.0
        """
        energy = self._between(between_bodies.elastic_energy, (1,), q, self._none_like("q", q), forces, None)
        return copied_to(out, energy[..., 0], (q,))

    def derivatives_between_bodies(
        self,
        q: npt.ArrayLike,
        qd: npt.ArrayLike,
        forces: Sequence[SpringDamper | Bushing],
        *,
        out: FloatArray | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Compute the derivatives of the joint forces of springs and bushings with respect to q and qd.

        The joint forces are the generalized forces of `wrenches_between_bodies`: they do the same work.

        Parameters
        ----------
        q, qd, forces
            As for `wrenches_between_bodies`.
        out : (..., 2, nv, nv) array, optional
            The array for both results, as for `forward_dynamics`.

        Returns
        -------
        dtau_dq, dtau_dqd : (..., nv, nv) arrays
            Row i belongs to tau[i]. Derivatives with respect to q are on the tangent space, as in
            `inverse_dynamics_derivatives`. A spring of zero length has the derivatives of a spring with `rest_length`
            0.

        Raises
        ------
        ArgumentError
            As for `wrenches_between_bodies`.

        Examples
        --------
        >>> import rbchain as rb
        >>> builder = rb.ModelBuilder()
        >>> builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=1.0))
        >>> spring = rb.SpringDamper(None, "slide", point_a=(0, 0, 0), point_b=(1, 0, 0), stiffness=5.0, damping=2.0)
        >>> dtau_dq, dtau_dqd = builder.build().derivatives_between_bodies([0.5], [0.0], [spring])
        >>> dtau_dq.tolist(), dtau_dqd.tolist()
        ([[-5.0]], [[-2.0]])
        """
        shape = (2, self.nv, self.nv)
        found = self._between(between_bodies.derivatives_between_bodies, shape, q, qd, forces, out)
        return found[..., 0, :, :], found[..., 1, :, :]

    def _between(
        self,
        driver: Callable[..., Any],
        shape: tuple[int, ...],
        q: npt.ArrayLike,
        qd: npt.ArrayLike,
        forces: Sequence[SpringDamper | Bushing],
        out: FloatArray | None,
    ) -> FloatArray:
        if not isinstance(forces, (list, tuple)) or not all(is_between_bodies(force) for force in forces):
            raise ArgumentError(f"forces is {excerpt(forces)}; expected a list of SpringDamper and Bushing objects")
        q, qd = as_array("q", q), as_array("qd", qd)
        batch = self.kernel_model.state_arguments.common_batch({"q": q.shape[:-1], "qd": qd.shape[:-1]})
        model = with_batch(cast("Model", self), batch)
        return compute_between_bodies(model, forces, batch, driver, shape, (q, qd), out=out)
