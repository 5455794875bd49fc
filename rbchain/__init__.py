"""Multibody dynamics of robot arms, floating-base robots, linkages and gear trains: one mechanism, or a batch of many.

`load` reads a model from a file, and `ModelBuilder` describes a model in Python. The methods of `Model` compute
kinematics, dynamics and derivatives, and `Model.simulate` simulates motions. `Study` describes Monte Carlo studies, and
`fit` estimates parameters from measured motions.
"""

from typing import Any

import lazy_loader

from .common.misspelled import no_attribute

__version__ = "0.1.0"

# `__init__.pyi` lists the public names. Each is imported on first use, because importing Numba takes half a second.
_imported, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
# studies need the `study` extra; `from rbchain import *` must also work without it
OF_STUDIES = (
    *("Discrete", "Dispersion", "Gumbel", "LogNormal", "Measure", "MultivariateNormal", "Normal", "Simulation"),
    *("Study", "Triangular", "TruncatedNormal", "Uniform", "Weibull", "load_results", "study"),
)
__all__ = [name for name in __all__ if name not in OF_STUDIES]


#: Former names, with their replacements.
RENAMED = {
    "StateError": "ArgumentError",
    "run_study": "rb.Study.read(file).run(out)",
    "open_dataset": "rb.load_results(folder)",
}


#: Names from other packages, with what does the same here.
FOREIGN = {
    "Hinge": "rb.Revolute",
    "HingeJoint": "rb.Revolute",
    "Continuous": "rb.Revolute",
    "Slide": "rb.Prismatic",
    "Slider": "rb.Prismatic",
    "Ball": "rb.Spherical",
    "FreeFlyer": "rb.Free",
    "Weld": "rb.WeldConstraint",
    "Spring": "rb.SpringDamper",
    "Damper": "rb.SpringDamper",
    "Ground": "rb.Plane",
    "Motor": "rb.Actuator",
    "Gaussian": "rb.Normal",
    "Body": "rb.ModelBuilder().add_body(...)",
    "Joint": "the classes of joints, such as rb.Revolute",
    "MjModel": "rb.load(path)",
    "MjData": "rb.Model, whose methods take the state, such as model.forward_dynamics(q, qd, tau)",
    "mj_step": "model.simulate or model.stepper",
    "mj_forward": "model.forward_dynamics(q, qd, tau, passive=True)",
    "mj_inverse": "model.inverse_dynamics(q, qd, qdd, passive=True)",
    "rnea": "model.inverse_dynamics",
    "aba": "model.forward_dynamics",
    "crba": "model.mass_matrix",
    "forwardKinematics": "model.body_poses or model.frame_poses",
}


def __getattr__(name: str) -> Any:
    if name in FOREIGN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; use {FOREIGN[name]}")
    if name in RENAMED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it is now {RENAMED[name]}")
    if name not in __dir__():
        raise no_attribute(f"module {__name__!r}", name, __dir__())
    return _imported(name)
