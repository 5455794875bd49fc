"""rbchain: the dynamics of serial chains and open trees of rigid bodies, one or a million in one call."""

from .chain import Model
from .drivers.threads import get_num_threads, set_num_threads
from .errors import FileFormatError, ModelError, RbchainError, StateError
from .io import load
from .model.builder import ModelBuilder
from .model.inertia import Inertia
from .model.joint import Composite, Fixed, Free, Planar, Prismatic, Revolute, Screw, Spherical, Universal
from .model.pose import Pose
from .simulation import Trajectory

__version__ = "0.1.0"

__all__ = [
    "Composite",
    "FileFormatError",
    "Fixed",
    "Free",
    "Inertia",
    "Model",
    "ModelBuilder",
    "ModelError",
    "Planar",
    "Pose",
    "Prismatic",
    "RbchainError",
    "Revolute",
    "Screw",
    "Spherical",
    "StateError",
    "Trajectory",
    "Universal",
    "get_num_threads",
    "load",
    "set_num_threads",
]
