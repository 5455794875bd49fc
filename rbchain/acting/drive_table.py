"""The table of drives: which drives act on each degree of freedom, and which exclude each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..core.control import drive_layout
from ..core.tree import sampler_layout as sampler, setting_layout as setting
from ..errors import ArgumentError
from .coordinates import dof_index
from .drives import PID, PRESCRIBED, ComputedTorque, OneJointDrive, PrescribedForce

if TYPE_CHECKING:
    from ..facade.model import Model

#: Whether a drive of each kind prescribes a motion.
PRESCRIBES_MOTION = np.isin(range(drive_layout.KIND_HELD + 1), drive_layout.PRESCRIBED_KINDS)
#: Rows of the table that are -1 for drives without the feature.
ABSENT = [
    *(drive_layout.INTEGRAL, drive_layout.NEXT),
    *(drive_layout.FEEDFORWARD, drive_layout.LAG, drive_layout.LAGGED),
]


def new_table(model: Model, drives: Sequence[OneJointDrive]) -> tuple[np.ndarray, list[int]]:
    """Return the table of drives without their parameters, and the column of each drive.

    Parameters
    ----------
    model : Model
    drives : list of drives of one joint
        The controllers of sampled drives are among them.

    Returns
    -------
    codes : (drive_layout.ROWS, columns) array of int
        Rows as in `core.control.drive_layout`. Only DOF, NEXT and RESTS are set.
    columns : list of int

    Raises
    ------
    ArgumentError
        If a drive prescribes the motion of a dof that has another drive, or two drives of a dof have computed torque or
        compensate gravity.
    """
    of_dofs: dict[int, list[int]] = {}
    for number, drive in enumerate(drives):
        of_dofs.setdefault(dof_index(model, drive.label(), drive.joint, drive.dof), []).append(number)
    codes = np.zeros((drive_layout.ROWS, model.nv + len(drives) - len(of_dofs)), np.int64)
    codes[ABSENT] = -1
    codes[drive_layout.RESTS] = 1
    codes[drive_layout.DOF, : model.nv] = range(model.nv)
    columns, free = [-1] * len(drives), model.nv
    for i, numbers in of_dofs.items():
        if len(numbers) == 1:
            columns[numbers[0]] = i
            continue
        _refuse_conflicts([drives[number] for number in numbers])
        numbers.sort(key=lambda number: not isinstance(drives[number], ComputedTorque))
        own = [i, *range(free, free + len(numbers) - 1)]
        codes[drive_layout.DOF, own] = i
        codes[drive_layout.NEXT, own] = [*own[1:], -1]
        free += len(numbers) - 1
        for number, column in zip(numbers, own, strict=True):
            columns[number] = column
    return codes, columns


def _refuse_conflicts(drives: Sequence[OneJointDrive]) -> None:
    """Raise an error for drives of the same degree of freedom whose forces do not add up."""
    place = f"degree of freedom {drives[0].dof or 0} of this joint"
    prescribing = [drive for drive in drives if isinstance(drive, PRESCRIBED)]
    forces = [drive for drive in drives if isinstance(drive, (PrescribedForce, PID, ComputedTorque))]
    if len(prescribing) > 1:
        raise ArgumentError(
            f"{prescribing[1].label()}: another drive already prescribes the motion of {place}; remove one of the "
            "two drives"
        )
    if prescribing and forces:
        raise ArgumentError(
            f"{forces[0].label()}: {type(prescribing[0]).__name__} prescribes the motion of {place}, so the force of "
            "this drive has no effect; remove one of the two drives"
        )
    computed = [drive for drive in forces if isinstance(drive, ComputedTorque)]
    if len(computed) > 1:
        raise ArgumentError(
            f"{computed[1].label()}: {place} already has a ComputedTorque, which determines its acceleration; remove "
            "one of them"
        )
    compensating = [drive for drive in forces if isinstance(drive, ComputedTorque) or drive.gravity_compensation]
    if len(compensating) > 1:
        raise ArgumentError(
            f"{compensating[1].label()}: several drives of {place} compensate gravity, so the gravity force acts "
            "several times; expected one. Set gravity_compensation of the others to False. ComputedTorque always "
            "compensates gravity"
        )


def settings_of_drives(codes: np.ndarray, samplers: sampler.Samplers | None, settings: np.ndarray) -> None:
    """Set the flags in `settings` that the table of drives and the sampled controllers need."""
    settings[setting.HYBRID] |= PRESCRIBES_MOTION[codes[drive_layout.KIND]].any()
    settings[setting.COMPENSATES] = codes[drive_layout.COMPENSATES_GRAVITY].any()
    settings[setting.COMPUTES] = (codes[drive_layout.KIND] == drive_layout.KIND_COMPUTED_TORQUE).any()
    models = [sampler.GROUP_COMPENSATES, sampler.GROUP_COMPUTES]
    settings[setting.CONTROLLER_MODEL] = (
        settings[setting.COMPENSATES]
        or settings[setting.COMPUTES]
        or (samplers is not None and (samplers.needs is not None or samplers.groups[models].any()))
    )
