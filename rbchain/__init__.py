"""rbchain: the dynamics of serial chains and open trees of rigid bodies, one or a million in one call."""

from .chain import Model
from .drivers.threads import get_num_threads, set_num_threads
from .errors import FileFormatError, ModelError, RbchainError, StateError
from .io import load
from .model.builder import ModelBuilder
from .model.inertia import Inertia
from .model.joint import Fixed, Prismatic, Revolute, Screw
from .model.pose import Pose
from .simulation import Trajectory

__version__ = "0.1.0"

__all__ = [
    "FileFormatError",
    "Fixed",
    "Inertia",
    "Model",
    "ModelBuilder",
    "ModelError",
    "Pose",
    "Prismatic",
    "RbchainError",
    "Revolute",
    "Screw",
    "StateError",
    "Trajectory",
    "get_num_threads",
    "load",
    "set_num_threads",
]
