"""rbchain: the dynamics of serial chains and open trees of rigid bodies, one or a million in one call."""

from .actions.drives import (
    PID,
    ComputedTorque,
    PrescribedAcceleration,
    PrescribedForce,
    PrescribedPosition,
    PrescribedVelocity,
    UserForces,
)
from .actions.events import Event
from .actions.signals import Signal
from .actions.wrenches import Current, Wrench
from .chain import Model
from .drivers.threads import get_num_threads, set_num_threads
from .errors import FileFormatError, ModelError, RbchainError, StateError, StudyError
from .io import load, save
from .io.meshes import inertia_of_mesh
from .model.builder import ModelBuilder
from .model.immersion import Immersion
from .model.inertia import Inertia
from .model.joint import Composite, Fixed, Free, Planar, Prismatic, Revolute, Screw, Spherical, Universal
from .model.limits import JointLimits
from .model.materials import density_of
from .model.passive import JointForces
from .model.pose import Pose
from .model.units import Units
from .model.visual import Visual
from .simulation import Trajectory

__version__ = "0.1.0"

_OF_STUDIES = ("Study", "run_study", "study")


def __getattr__(name):
    """Studies need packages of the extra `study`, which nothing else should wait for: imported when first asked for."""
    if name not in _OF_STUDIES:
        raise AttributeError(f"module 'rbchain' has no attribute {name!r}")
    from importlib import import_module

    try:
        study = import_module("rbchain.study")
    except ImportError as error:
        words = f"studies need the package {error.name}, which is missing: pip install 'rbchain[study]'"
        raise ImportError(words) from None
    return study if name == "study" else getattr(study, name)


__all__ = [
    "PID",
    "Composite",
    "ComputedTorque",
    "Current",
    "Event",
    "FileFormatError",
    "Fixed",
    "Free",
    "Immersion",
    "Inertia",
    "JointForces",
    "JointLimits",
    "Model",
    "ModelBuilder",
    "ModelError",
    "Planar",
    "Pose",
    "PrescribedAcceleration",
    "PrescribedForce",
    "PrescribedPosition",
    "PrescribedVelocity",
    "Prismatic",
    "RbchainError",
    "Revolute",
    "Screw",
    "Signal",
    "Spherical",
    "StateError",
    "StudyError",
    "Trajectory",
    "Units",
    "Universal",
    "UserForces",
    "Visual",
    "Wrench",
    "density_of",
    "get_num_threads",
    "inertia_of_mesh",
    "load",
    "save",
    "set_num_threads",
]
