"""The public names, each from its module: read by type checkers, and by the package itself, which imports on demand."""

from . import (
    analysis as analysis,
    compiled as compiled,
    errors as errors,
    io as io,
    model as model,
    reference as reference,
    study as study,
)
from .acting.actuators import Actuator
from .acting.between_bodies import Bushing, SpringDamper
from .acting.capsule_contacts import CapsuleCapsuleContact
from .acting.drives import (
    PID,
    ComputedTorque,
    PrescribedAcceleration,
    PrescribedForce,
    PrescribedPosition,
    PrescribedVelocity,
)
from .acting.ellipsoid_contacts import EllipsoidContact
from .acting.events import Event
from .acting.friction_and_stops import DryFriction, HardStops
from .acting.inputs import Input
from .acting.needs import Needs
from .acting.sampled import Sampled
from .acting.sensors import Encoder, VelocitySensor
from .acting.shape_contacts import Plane
from .acting.signals import Signal
from .acting.sphere_contacts import SphereContact, SphereSphereContact
from .acting.user_forces import UserForces
from .acting.wrenches import Current, Wrench
from .drivers.options import options
from .drivers.threads import get_num_threads, set_num_threads
from .errors import (
    ArgumentError,
    AssemblyError,
    FileFormatError,
    ModelError,
    RbchainError,
    SimulationError,
    SimulationWarning,
    Status,
    StudyError,
    UnknownNameError,
)
from .facade.builder import ModelBuilder
from .facade.model import Model
from .facade.targets import Target
from .fitting.experiments import ExperimentDesign, experiment_design
from .fitting.fit import fit
from .fitting.measurements import Measurement
from .fitting.result import Fit
from .io import load, save
from .io.meshes import inertia_of_mesh
from .io.motions import load_motion
from .model.collision_shape import CollisionShape
from .model.constraints import (
    BallConstraint,
    CouplerConstraint,
    DistanceConstraint,
    HingeConstraint,
    WeldConstraint,
)
from .model.immersion import Immersion
from .model.inertia import Inertia
from .model.joint import Composite, Fixed, Free, Planar, Prismatic, Revolute, Screw, Spherical, Universal
from .model.limits import JointLimits
from .model.materials import density_of
from .model.passive import PassiveForces
from .model.pose import Pose
from .model.units import Units
from .model.visual import Visual
from .simulate.trajectory import Trajectory
from .study import (
    Discrete as Discrete,
    Dispersion as Dispersion,
    Gumbel as Gumbel,
    LogNormal as LogNormal,
    Measure as Measure,
    MultivariateNormal as MultivariateNormal,
    Normal as Normal,
    Simulation as Simulation,
    Study as Study,
    Triangular as Triangular,
    TruncatedNormal as TruncatedNormal,
    Uniform as Uniform,
    Weibull as Weibull,
    load_results as load_results,
)

__version__: str

__all__ = [
    "PID",
    "Actuator",
    "ArgumentError",
    "AssemblyError",
    "BallConstraint",
    "Bushing",
    "CapsuleCapsuleContact",
    "CollisionShape",
    "Composite",
    "ComputedTorque",
    "CouplerConstraint",
    "Current",
    "DistanceConstraint",
    "DryFriction",
    "EllipsoidContact",
    "Encoder",
    "Event",
    "ExperimentDesign",
    "FileFormatError",
    "Fit",
    "Fixed",
    "Free",
    "HardStops",
    "HingeConstraint",
    "Immersion",
    "Inertia",
    "Input",
    "JointLimits",
    "Measurement",
    "Model",
    "ModelBuilder",
    "ModelError",
    "Needs",
    "PassiveForces",
    "Planar",
    "Plane",
    "Pose",
    "PrescribedAcceleration",
    "PrescribedForce",
    "PrescribedPosition",
    "PrescribedVelocity",
    "Prismatic",
    "RbchainError",
    "Revolute",
    "Sampled",
    "Screw",
    "Signal",
    "SimulationError",
    "SimulationWarning",
    "SphereContact",
    "SphereSphereContact",
    "Spherical",
    "SpringDamper",
    "Status",
    "StudyError",
    "Target",
    "Trajectory",
    "Units",
    "Universal",
    "UnknownNameError",
    "UserForces",
    "VelocitySensor",
    "Visual",
    "WeldConstraint",
    "Wrench",
    "density_of",
    "experiment_design",
    "fit",
    "get_num_threads",
    "inertia_of_mesh",
    "load",
    "load_motion",
    "options",
    "save",
    "set_num_threads",
]
