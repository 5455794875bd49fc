"""Inputs of the drives of a model, and its stops and friction as forces for `simulate`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ..acting.friction_and_stops import DryFriction, HardStops
from ..acting.input_values import inputs_of_drives, with_values
from ..acting.signals import SignalLike
from ..model.named_items import NamedDict
from .varying import Varying


class Actuation(Varying):
    """Properties and methods of Model on its drives, and on limits and friction of its joints."""

    @property
    def inputs(self) -> dict[str, Any]:
        """The inputs of the model's drives, and their values, by name; see `with_inputs`."""
        found = {name: term.value.tolist() for name, term in inputs_of_drives(self.drives).items()}
        return NamedDict("the model", "input", "inputs", found)

    def with_inputs(self, inputs: Mapping[str, SignalLike]) -> Self:
        """Return the model with other values of the inputs of its drives, such as the controls of an MJCF file.

        Parameters
        ----------
        inputs : dict
            Values of inputs of `drives`, by their names: a number, one for each sample, or a signal. A number is the
            value at the start, which a stepper can change. A signal replaces its input. It has a time derivative, which
            the gain kd of a PID multiplies; an input has none. rbchain does not check whether a signal leaves the range
            of the input.

        Returns
        -------
        Model

        Raises
        ------
        UnknownNameError
            If the drives have no input with one of the names.
        ArgumentError
            If a value is beyond the range of its input.

        Examples
        --------
        >>> import rbchain as rb
        >>> builder = rb.ModelBuilder()
        >>> builder.add_body("arm", joint=rb.Revolute(), inertia=rb.Inertia.rod(1.0, mass=1.0))
        >>> builder.add_drive(rb.PID("arm", rb.Input("servo"), kp=20.0, kd=4.0))
        >>> arm = builder.build()
        >>> arm.inputs
        {'servo': 0.0}
        >>> motion = arm.with_inputs({"servo": 0.5}).simulate([0.0], duration=3.0, method="rk4", step=0.01)
        >>> float(motion.q[-1, 0].round(2))
        0.5
        """
        return self._of(self.description.replaced({"drives": with_values(self.drives, inputs)}), self.kernel_model)

    def hard_stops(self, *, restitution: npt.ArrayLike = 0.0) -> tuple[HardStops, ...]:
        """Return rigid stops at all position limits, for `simulate(forces=...)`.

        Degrees of freedom without finite limits, with equal limits, or with the elastic stops of `PassiveForces` get no
        stop. Position limits from files are stored, but only such stops enforce them.

        Parameters
        ----------
        restitution : float or one for each sample
            Ratio of the speeds after and before an impact, from 0 to 1, of all stops.

        Returns
        -------
        tuple of HardStops

        Examples
        --------
        >>> import rbchain as rb
        >>> arm = rb.load("examples/puma560.urdf")
        >>> len(arm.hard_stops(restitution=0.2))
        6
        """
        limits, found = self.position_limits, []
        elastic = np.any(self.limit_stiffness != 0.0, axis=tuple(range(self.limit_stiffness.ndim - 1)))
        for i, (joint, dof) in enumerate(self._joints_of_dofs()):
            lower, upper = limits[i]
            if np.isfinite(limits[i]).any() and lower < upper and not elastic[i]:
                found.append(HardStops(joint, restitution=restitution, dof=dof))
        return tuple(found)

    def dry_friction(self) -> tuple[Self, tuple[DryFriction, ...]]:
        """Replace the regularized friction of the joints with dry friction, with which joints can stick.

        Returns
        -------
        model : Model
            Its `friction` and `static_friction` are zero.
        forces : tuple of DryFriction
            For `simulate(forces=...)`, with the limits that the friction of this model has at rest and at high speeds.

        Raises
        ------
        ModelError
            If the friction of the samples differs.

        Examples
        --------
        >>> import rbchain as rb
        >>> builder = rb.ModelBuilder()
        >>> passive = rb.PassiveForces(friction=20.0)
        >>> inertia = rb.Inertia.rod(1.0, mass=2.0)
        >>> builder.add_body("rod", joint=rb.Revolute((0, 1, 0)), inertia=inertia, passive=passive)
        >>> rod, friction = builder.build().dry_friction()
        >>> motion = rod.simulate([0.5], duration=1.0, method="moreau", step=0.01, forces=friction)
        >>> motion.q[-1].tolist()
        [0.5]
        """
        zeros, found = np.zeros(self.nv), []
        for i, (joint, dof) in enumerate(self._joints_of_dofs()):
            kinetic, static = self.friction[..., i][()], self.static_friction[..., i]
            static = np.maximum(static, kinetic)
            if static.any():
                skew = self.friction_asymmetry[..., i][()]
                found.append(
                    DryFriction(
                        joint,
                        kinetic=kinetic + skew,
                        static=static + skew,
                        kinetic_backward=kinetic - skew,
                        static_backward=static - skew,
                        dof=dof,
                    )
                )
        frictionless = self.replace(friction=zeros, static_friction=zeros, friction_asymmetry=zeros)
        return frictionless, tuple(found)

    def _joints_of_dofs(self) -> list[tuple[str, int | None]]:
        """Return the joint of each degree of freedom, and its number there, or None if it is the only one."""
        counts = self.kernel_model.dofs.counts
        found: list[tuple[str, int | None]] = []
        for joint, count in zip(self.joint_names, counts, strict=True):
            found += [(joint, dof if count > 1 else None) for dof in range(count)]
        return found
