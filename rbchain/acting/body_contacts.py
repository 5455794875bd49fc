"""The base class of contacts of two bodies."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from .numeric_fields import Force
from .packing import SampleNumbers

if TYPE_CHECKING:
    from ..facade.model import Model


#: The properties of a contact, as other packages call them.
MATERIAL = {"mu": "friction", "friction_coefficient": "friction", "cor": "restitution", "bounce": "restitution"}


class BodyContact(Force):
    """Base class of the contacts of two bodies, or of a body and the world.

    Each subclass has these fields, and declares `restitution` and `friction` in `numeric_fields`.
    """

    internal_names: ClassVar[tuple[str, ...]] = ("has_tangents", "flatten", "gap")
    restitution: npt.ArrayLike
    friction: npt.ArrayLike
    max_records: int

    @property
    def has_tangents(self) -> bool:
        """Whether the contact has rows for friction, in any of the samples."""
        raise NotImplementedError

    def flatten(self, model: Model, what: str, numbers: SampleNumbers) -> tuple[int, int, int]:
        """Add the numbers of the shape to the arrays.

        Parameters
        ----------
        model : Model
        what : str
            Name of the contact, with which messages begin.
        numbers : SampleNumbers

        Returns
        -------
        kind : int
            The shape, as in `core.contacts.contact_shapes`.
        dof, other : int
            The last dof of the second and of the first body; nv for the world.

        Raises
        ------
        ArgumentError, ModelError
            If a body does not exist, or values do not fit the batch.
        """
        raise NotImplementedError

    def gap(self, model: Model, q: np.ndarray) -> float:
        """Compute the gap of a contact with single numbers at q (nq,), m."""
        raise NotImplementedError
