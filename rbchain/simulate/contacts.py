"""Dry friction, stops and contacts in simulations with adaptive steps, which locate changes of their modes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..acting.contacts import NAMES_OF_CONTACTS
from ..core.contacts import element_layout as element
from ..core.control import drive_layout as drive
from ..errors import ArgumentError

if TYPE_CHECKING:
    from ..drivers.trajectories import Actions
    from ..facade.model import Model
    from .methods import Method


def with_modes(model: Model, actions: Actions | None, method: Method, dtype: np.dtype) -> Actions | None:
    """Return the actions, with modes if a method with adaptive steps computes the forces of contacts from them.

    Raises
    ------
    ArgumentError
        If the method does not support the model, the precision or the drives together with contacts.
    """
    if actions is None or actions.shared.contacts is None or not method.locates_contacts:
        return actions
    what = f'method "{method.name}" with {NAMES_OF_CONTACTS}'
    if dtype != np.float64:
        raise ArgumentError(f'{what} needs float64, but q0 and qd0 are float32. Use float64, or method "moreau"')
    if model.kernel_model.constraint_tables is not None:
        model.kernel_model.refuse_compliance(what)  # "moreau" does not support them either
        raise ArgumentError(f'{what} does not support closed loops. Use method "moreau"')
    kinds = actions.shared.drives[drive.KIND]
    if np.isin(kinds, drive.PRESCRIBED_KINDS).any():
        raise ArgumentError(f'{what} does not support drives that prescribe a motion. Use method "moreau"')
    return actions._replace(modes=np.array([np.asarray(actions.shared.contacts)[element.SIZE].sum()]))
