"""Pickles that contain the names of classes, but not the modules that define them now.

A pickle of Python names the module of each class, so it could not be read after the class has moved. Pickles of
rbchain contain the function `new` of this module and the name of the class. If a class that is not a public name of
the package moves, only `MODULES` changes.
"""

from __future__ import annotations

import importlib
from typing import Any, SupportsIndex

#: Modules of the classes that are not public names of rbchain.
MODULES = {
    "BaseParameters": "rbchain.facade.identification",
    "DHLink": "rbchain.io.dh",
    "Description": "rbchain.model.description",
    "Equilibrium": "rbchain.analysis.equilibria",
    "EventRecord": "rbchain.acting.events",
    "Frame": "rbchain.model.description",
    "FrequencyResponse": "rbchain.analysis.transfer_functions",
    "ConstraintPlace": "rbchain.model.description",
    "InverseKinematicsSolution": "rbchain.facade.inverse_kinematics",
    "InputTerm": "rbchain.acting.inputs",
    "ImpactRecord": "rbchain.acting.contacts",
    "Keyframe": "rbchain.model.keyframe",
    "LinearModel": "rbchain.analysis.linear_models",
    "Margins": "rbchain.analysis.margins",
    "Modes": "rbchain.analysis.modes",
    "NamedDict": "rbchain.model.named_items",
    "PeriodicMotion": "rbchain.analysis.periodic_motions",
    "RandomSignal": "rbchain.acting.random_signals",
    "SensorOfFile": "rbchain.model.sensor_of_file",
    "SignalSum": "rbchain.acting.signal_arithmetic",
    "SignalTerm": "rbchain.acting.signal_arithmetic",
    "StickingRecord": "rbchain.acting.contacts",
}


def class_of(name: str) -> Any:
    """Return the class with this name."""
    return getattr(importlib.import_module(MODULES.get(name, "rbchain")), name)


def new(name: str, *arguments: Any) -> Any:
    """Make an object of the class with this name; only tuples have arguments, which are their items."""
    cls = class_of(name)
    return cls.__new__(cls, *arguments)


class PickledByName:
    """Base class of objects whose pickles contain the name of their class."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        cls = type(self)
        if not cls.__module__.startswith("rbchain.") or class_of(cls.__name__) is not cls:  # a subclass of a user
            return super().__reduce_ex__(protocol)
        return new, (cls.__name__,), self.__getstate__()
