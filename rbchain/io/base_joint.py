"""The joint between the world and the root link of a URDF or SDF file."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import ModelError
from ..model.joint import JOINTS, AnyJoint


def check_base(base: AnyJoint | None) -> None:
    """Raise a ModelError for a base that is not a joint."""
    if base is not None and not isinstance(base, JOINTS):
        expected = ", ".join(kind.__name__ for kind in JOINTS)
        raise ModelError(f"base is {base!r}; expected an instance of {expected}, such as Free()")


def check_moves(name: str, base: AnyJoint | None, joint_types: Iterable[str]) -> None:
    """Raise a ModelError for a model without a base whose joints all have the type "fixed"."""
    if base is None and all(kind == "fixed" for kind in joint_types):
        raise ModelError(
            f"model {name!r} has no moving body: all its joints are fixed, and its root link is fixed to the "
            "world; expected at least one other joint. To let the root link move, pass base=rbchain.Free() to load, or "
            "--free-base to a command"
        )
