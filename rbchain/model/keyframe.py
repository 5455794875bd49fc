"""Keyframe: a named state of a model from a file, with the values of inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ..common.real_arrays import FloatArray
from ..common.values import Value
from .named_items import NamedDict


@dataclass(frozen=True, eq=False)
class Keyframe(Value):
    """A named state of a model from a file, such as the standing pose of a robot.

    Attributes
    ----------
    q, qd : (nq,), (nv,) arrays
        Positions and velocities. They are read-only: copy what you change.
    inputs : dict of float
        Values of the inputs of the model's drives, by their names.
    """

    q: FloatArray
    qd: FloatArray
    inputs: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("q", "qd"):
            array = np.array(getattr(self, name), float)
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        object.__setattr__(self, "inputs", NamedDict("the keyframe", "input", "inputs", self.inputs))
