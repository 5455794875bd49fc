"""The nominal sample, before anything varies: its model, initial state, drives, forces and events."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..chain import Model
from ..errors import StudyError
from .description import Description, ModelSource, Simulation
from .numbers import real_numbers
from .places import call_at


@dataclass(frozen=True, eq=False)
class Nominal:
    """What is simulated before anything varies. Can be pickled."""

    model: Model
    simulation: Simulation
    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    drives: tuple[Any, ...]
    forces: tuple[Any, ...]
    events: tuple[Any, ...]

    @property
    def times(self) -> np.ndarray:
        """The times of the motion at which measures and outputs are evaluated, in s."""
        return np.linspace(0.0, self.simulation.duration, self.simulation.samples)


def nominal_of(description: Description, folder: Path) -> Nominal:
    """Build the model of a description, and find the initial state that fits it."""
    source = description.model
    model = call_at("model", source.build, folder) if isinstance(source, ModelSource) else source
    if model.batch_shape:
        raise StudyError(f"model is a batch of shape {model.batch_shape}; expected a single model")
    state = _initial_state(description.simulate, model)
    return Nominal(model, description.simulate, *state, description.drives, description.forces, description.events)


def _initial_state(simulate: Simulation, model: Model) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions, velocities and constant joint forces of this model."""

    def vector(name: str, value: Any, size: int) -> np.ndarray:
        numbers = call_at("simulate", real_numbers, name, value)
        try:
            state = np.broadcast_to(numbers, size)
        except ValueError:
            raise StudyError(f"simulate.{name} is {value!r}; expected {size} numbers") from None
        if not np.isfinite(state).all():
            raise StudyError(f"simulate.{name} is {state.tolist()}; expected finite numbers")
        return state

    q = vector("q", model.neutral() if simulate.q is None else simulate.q, model.nq)
    qd, tau = vector("qd", simulate.qd, model.nv), vector("tau", simulate.tau, model.nv)
    call_at("simulate.q", model.integrate, q, np.zeros(model.nv))  # which looks at the quaternions
    return q, qd, tau
