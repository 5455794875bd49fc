"""Outputs of user functions that are targets of PID controllers: cascaded control."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..common.real_arrays import excerpt
from ..core.control import drives as drive_codes
from ..core.tree import sampler_layout as rows
from ..errors import StateError
from .packing import SampleNumbers
from .sampled import Sampled

if TYPE_CHECKING:
    from ..facade.model import Model

FORCE = "force"
#: Rows of `Samplers.targets` by the names of outputs.
TARGETS = {"position": rows.TARGET_POSITION, "velocity": rows.TARGET_VELOCITY}


def kinds_of_outputs(drive: Sampled, what: str) -> tuple[str, ...]:
    """Return the kinds of outputs of a user function. Raises a StateError if they are unknown."""
    given = (drive.outputs,) if isinstance(drive.outputs, str) else drive.outputs
    if isinstance(given, (list, tuple)) and tuple(given) in ((FORCE,), ("position",), ("velocity",), (*TARGETS,)):
        return tuple(given)
    raise StateError(
        f"{what}: outputs is {excerpt(drive.outputs)}; expected 'force', 'position', 'velocity' or "
        "('position', 'velocity')"
    )


class Targets:
    """Channels of outputs that are the targets of degrees of freedom."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.channels = np.full((rows.TARGET_ROWS, model.nv), -1, np.int64)

    def add(self, drive: Sampled, what: str, kinds: tuple[str, ...], dofs: list[int], first: int) -> None:
        """Add the outputs of a function, which are the channels from `first` on."""
        for kind in kinds:
            if kind not in TARGETS:
                continue
            taken = self.channels[TARGETS[kind], dofs] >= 0
            if taken.any():
                joint = self._joint(dofs[int(np.argmax(taken))])
                raise StateError(
                    f"{what}: another function computes the {kind} target of joint {joint!r}; expected one"
                )
            self.channels[TARGETS[kind], dofs] = range(first, first + len(dofs))
            first += len(dofs)

    def table(self, drives: np.ndarray, numbers: SampleNumbers) -> np.ndarray | None:
        """Return the channels (TARGET_ROWS, nv), or None without targets, for this table of drives (DRIVE_ROWS, nv).

        Raises a StateError if a target has no controller, or a controller has no target.
        """
        follows, has_target = drives[drive_codes.DRIVE_FOLLOWS_TARGET] == 1, (self.channels >= 0).any(0)
        for i in np.flatnonzero(has_target & ~follows).tolist():
            raise StateError(
                f"Sampled: outputs are targets of joint {self._joint(i)!r}, which has no PID that follows them; "
                f'expected a drive PID({self._joint(i)!r}, "target", ...). Or name the joints of the outputs in joints'
            )
        for i in np.flatnonzero(follows).tolist():
            self._check_target(i, drives[drive_codes.DRIVE_GAINS, i], numbers)
        return self.channels if has_target.any() else None

    def _check_target(self, i: int, gains: int, numbers: SampleNumbers) -> None:
        what = f"PID of joint {self._joint(i)!r}"
        if (self.channels[:, i] < 0).all():
            raise StateError(
                f"{what}: its reference is 'target', but no user function computes its target; expected a "
                "Sampled(function, outputs='position') for this joint"
            )
        kp, ki = (numbers.columns[gains + j] for j in (drive_codes.GAIN_KP, drive_codes.GAIN_KI))
        if self.channels[rows.TARGET_POSITION, i] < 0 and (kp.any() or ki.any()):
            raise StateError(
                f"{what}: it has kp or ki, but its target is only a velocity; expected kp=0 and ki=0. Compute the "
                "position, too: outputs=('position', 'velocity')"
            )

    def _joint(self, i: int) -> str:
        return self.model.joint_names[int(self.model.kernel_model.dofs.body[i])]
