"""Models with other parameters of the same mechanism: for the samples of a batch, or as another design."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self, Unpack

import numpy.typing as npt

from ..model.description import Description
from ..model.kernel_model import KernelModel
from ..model.varied_fields import VariedFields, replaced_description, varied_description
from .attributes import Attributes


class Varying(Attributes):
    """Methods of Model that change its parameters."""

    def vary(self, paths: Mapping[str, npt.ArrayLike] | None = None, /, **fields: Unpack[VariedFields]) -> Self:
        """Return a model whose parameters differ from the nominal ones, and may differ between the samples of a batch.

        Controllers do not use the new values, even if these are the same for all samples, because the `nominal` model
        does not change. Use `replace` to change the nominal model.

        Parameters
        ----------
        paths : dict of str, optional
            New values of parameters by their paths `owner.field`, such as `{"link2.mass": m, "elbow.damping": d}`. The
            owner is a body, a joint or a constraint; the field is listed below (for a constraint, omit the prefix
            ``constraint_``). Fields of the whole model have no owner: "gravity.y". Each array has one value per sample:
            the batch shape, followed by the axis of the components for a vector such as "link2.cg". "link2.cg.x" or
            "link2.cg.0" is one component. The value for a joint with several degrees of freedom applies to all of them,
            and "base.damping.3" is the value for one. ``*.mass``, ``link[2-6].mass`` and ``{link1,link4}.mass`` give
            several parameters the same value. With "link2.mass_and_inertia", the inertia tensor scales with the mass.
            Batch shapes broadcast as in NumPy.
        **fields
            New values of any of `mass`, `cg`, `inertia`, `placement_rotation`, `placement_translation`, `axis`,
            `pitch`, `rotor_inertia`, `gear_ratio`, `gravity`, `fluid_density`, the fields of `PassiveForces` and
            `Immersion`, and the parameters of constraints: `constraint_point_a`, `constraint_point_b`,
            `constraint_axes_a`, `constraint_axes_b`, `constraint_length`, `constraint_ratio` and `constraint_offset`.
            Also `constraint_compliance`, `constraint_angular_compliance` and `constraint_relaxation_time`, which are 0
            for constraints that do not use them. The fields of constraints have one entry per constraint. Other entries
            that a constraint does not use, such as the length of a ball, are ignored.

            Each field has the shape of the attribute of that name, or the batch axes before this shape. Batch shapes
            broadcast as in NumPy. `paths` change these fields. The other fields keep their values: a new mass does not
            change the inertia. Masses of zero are allowed; see `bodies_without_inertia`.

            `inertia` may also be (..., n, 6), in the order xx, xy, xz, yy, yz, zz. `body` stands for `mass`, `cg` and
            `inertia`: `Inertia` objects in (nested) lists (..., n).

        Returns
        -------
        Model
            It has the batch shape of the fields, which broadcasts with the batch shapes of states as in NumPy. A state
            can be the same for all samples, or each sample has its own. Several states of each sample lie along axes
            before the batch. `many[..., None]` takes them along an axis after the batch, as in `motion.q`.

        Raises
        ------
        ModelError
            If a field does not exist, has the wrong shape, or has an impossible value. The message contains the field,
            the body or joint, and the sample.
        UnknownNameError
            If a path does not match any parameter.

        Examples
        --------
        >>> import numpy as np, rbchain as rb
        >>> arm = rb.Model.serial_chain(2, mass=1.0)
        >>> many = arm.vary({"link2.mass": [1.5, 2.0, 2.5], "*.damping": 0.1})
        >>> many.mass.tolist(), many.damping.tolist()
        ([[1.0, 1.5], [1.0, 2.0], [1.0, 2.5]], [0.1, 0.1])

        1000 pendulums with different masses and centers of mass:

        >>> import numpy as np, rbchain as rb
        >>> pendulum = rb.Model.serial_chain(1)
        >>> rng = np.random.default_rng(0)
        >>> many = pendulum.vary(mass=rng.uniform(1, 2, (1000, 1)), cg=rng.uniform(0.1, 0.3, (1000, 1, 3)))
        >>> many.forward_dynamics(np.zeros((1000, 1)), np.zeros((1000, 1)), np.zeros((1000, 1))).shape
        (1000, 1)
        """
        return self._with_numbers(varied_description(self.description, self.kernel_model.dofs, fields, paths))

    def replace(self, paths: Mapping[str, npt.ArrayLike] | None = None, /, **fields: Unpack[VariedFields]) -> Self:
        """Return a model with other nominal parameters, which its controllers also use.

        Parameters
        ----------
        paths, **fields
            As for `vary`, one value for all samples.

        Returns
        -------
        Model
            Its `nominal` model has the new values too. If this model was varied, its samples keep their other
            parameters.

        Raises
        ------
        ModelError
            As for `vary`, or if the values of the samples differ.

        Examples
        --------
        >>> import rbchain as rb
        >>> arm = rb.Model.serial_chain(1, mass=3.0)
        >>> arm.replace(mass=[2.0]).nominal.mass.tolist(), arm.vary(mass=[2.0]).nominal.mass.tolist()
        ([2.0], [3.0])
        """
        return self._with_numbers(replaced_description(self.description, self.kernel_model.dofs, fields, paths))

    def _with_numbers(self, description: Description) -> Self:
        """Return the model of a description with other numbers of the same mechanism."""
        return self._of(description, KernelModel(description, self.kernel_model))
