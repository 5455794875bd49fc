"""The nominal sample: model, initial state, drives, forces and events before any dispersion changes them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...acting.random_actions import actions_of_samples
from ...common.real_arrays import excerpt, real_array
from ...errors import StudyError
from ...facade.model import Model
from ..describe.description import Description, Simulation
from ..describe.forces_of_model import forces_of
from ..describe.model_source import ModelSource
from ..describe.places import errors_at


@dataclass(frozen=True, eq=False)
class Nominal:
    """The simulation without dispersions. Can be pickled."""

    model: Model
    simulation: Simulation
    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    drives: tuple[Any, ...]
    forces: tuple[Any, ...]
    events: tuple[Any, ...]
    seed: int
    energy_error: bool  # whether a measure needs the error of the energy

    def actions(self, numbers: np.ndarray) -> tuple[list[Any], list[Any]]:
        """Return drives and forces with the random signals of the samples with these numbers (count,)."""
        drives, forces = list(self.drives), list(self.forces)
        return actions_of_samples(drives, forces, self.simulation.duration, numbers, self.seed)

    @property
    def times(self) -> np.ndarray:
        """All times at which the trajectories are evaluated, from 0 to the end, in s."""
        return self.simulation.times[0]


def nominal_of(description: Description, folder: Path) -> Nominal:
    """Build the model of a description, and the initial state in the shape that the model needs."""
    source = description.model
    with errors_at("model"):
        model = source.build(folder) if isinstance(source, ModelSource) else source
    if model.batch_shape:
        raise StudyError(
            f"model is a batch of shape {model.batch_shape}; expected a model without batch axes. Describe what varies "
            "among the samples in vary"
        )
    if description.simulate.keyframe is not None:
        model, state = _at_keyframe(description.simulate, model)
    else:
        state = _initial_state(description.simulate, model)
    with errors_at("forces"):
        forces = forces_of(description.forces, model)
    drives = tuple(model.drives) if description.drives is None else description.drives
    actions = drives, forces, description.events
    energy_error = any(measure.quantity == "energy_error" for measure in description.measures)
    return Nominal(model, description.simulate, *state, *actions, description.seed, energy_error)


def _at_keyframe(simulate: Simulation, model: Model) -> tuple[Model, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return the model with the inputs of a keyframe, and the initial state of the keyframe."""
    with errors_at("simulate.keyframe"):
        keyframe = model.keyframes[str(simulate.keyframe)]
        model = model.with_inputs(keyframe.inputs)
    return model, _initial_state(simulate.model_copy(update={"q": keyframe.q, "qd": keyframe.qd}), model)


def _initial_state(simulate: Simulation, model: Model) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return initial positions, initial velocities and constant joint forces, each with an entry for each dof."""

    def vector(name: str, value: Any, size: int) -> np.ndarray:
        numbers = real_array(f"simulate.{name}", value, StudyError, truth_values=True)
        try:
            state = np.broadcast_to(numbers, size)
        except ValueError:
            raise StudyError(f"simulate.{name} is {excerpt(value)}; expected one number, or {size} numbers") from None
        if not np.isfinite(state).all():
            raise StudyError(f"simulate.{name} is {excerpt(state.tolist())}; expected finite numbers")
        return state

    q = vector("q", model.neutral() if simulate.q is None else simulate.q, model.nq)
    qd, tau = vector("qd", simulate.qd, model.nv), vector("tau", simulate.tau, model.nv)
    with errors_at("simulate.q"):
        model.integrate(q, np.zeros(model.nv))  # checks the quaternions
    return q, qd, tau
