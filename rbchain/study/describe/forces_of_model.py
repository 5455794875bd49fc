"""Forces of a study that follow from its model: contacts of collision shapes, and stops at position limits."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field

from ...acting.shape_contacts import Plane
from ...acting.tables import action_of
from ...acting.wrenches import FORCES
from ...facade.model import Model
from .numbers import Described, Names

KINDS_OF_FORCES = {force.__name__: force for force in FORCES}
Coordinates = tuple[float, float, float]


class Ground(Described):
    """The plane that collision shapes touch: the arguments of `rb.Plane`."""

    point: Coordinates
    normal: Coordinates


class ShapeContacts(Described):
    """Contacts of the collision shapes of the model: the arguments of `Model.contacts`, with the same defaults."""

    ground: Ground | None = None
    frames: Names | None = None
    pairs: tuple[tuple[str, str], ...] = ()
    friction: Annotated[float, Field(ge=0.0)] = 0.6
    restitution: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0

    internal_names: ClassVar[tuple[str, ...]] = ("forces",)

    def forces(self, model: Model) -> Sequence[Any]:
        """Return the contacts of a model."""
        ground = None if self.ground is None else Plane(self.ground.point, self.ground.normal)
        numbers = {"friction": self.friction, "restitution": self.restitution}
        return model.contacts(ground=ground, frames=self.frames, pairs=self.pairs, **numbers)


class StopsAtLimits(Described):
    """Rigid stops at all position limits of the model: the argument of `Model.hard_stops`, with the same default."""

    restitution: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0

    internal_names: ClassVar[tuple[str, ...]] = ("forces",)

    def forces(self, model: Model) -> Sequence[Any]:
        """Return the stops of a model."""
        return model.hard_stops(restitution=self.restitution)


#: Types of tables that stand for the forces which a method of the model returns.
OF_MODEL: dict[str, type[ShapeContacts | StopsAtLimits]] = {"contacts": ShapeContacts, "hard_stops": StopsAtLimits}


def force_of(table: Mapping[str, Any]) -> Any:
    """Return the force of a table, such as {type = "Wrench", ...}, or a description of forces of the model.

    Raises ArgumentError or StudyError, as `action_of` does.
    """
    kind = table.get("type")
    if not isinstance(kind, str) or kind not in OF_MODEL:
        return action_of(table, kinds=KINDS_OF_FORCES | OF_MODEL)
    return OF_MODEL[kind](**{key: value for key, value in table.items() if key != "type"})


def forces_of(given: Sequence[Any], model: Model) -> tuple[Any, ...]:
    """Return forces, with the forces of the model in place of their descriptions."""
    found: list[Any] = []
    for force in given:
        found += force.forces(model) if isinstance(force, ShapeContacts | StopsAtLimits) else [force]
    return tuple(found)
