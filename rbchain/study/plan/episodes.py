"""Episodes of a study for a stepper: draws that depend only on the seed, the sample and the episode."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...core.lanes.random_numbers import DRAW_CHANNEL, two_uniforms
from ...errors import Status, StudyError
from ...simulate.episodes import DrawnSamples, Episodes
from ..describe.designs import LatinHypercube, Random, Sobol
from ..describe.parameter_table import PARAMETERS
from .plan import Plan

#: Designs whose points follow the distributions. Episodes have independent draws from these.
OF_DISTRIBUTIONS = Random, LatinHypercube, Sobol


class EpisodesOfStudy(Episodes):
    """The episodes of a study.

    The random inputs of an episode are independent draws from the distributions, as from `Study.inputs.sample`, even if
    the study has another design.
    """

    def __init__(self, plan: Plan) -> None:
        nominal = plan.nominal
        self._plan, self.columns = plan, len(plan.columns)
        self.seed, self.model, self.drives, self.forces = nominal.seed, nominal.model, nominal.drives, nominal.forces
        self.varies_actions = any(PARAMETERS[draws.varied.parameter].classes for draws in plan.drawn.draws)

    def values(self, numbers: np.ndarray) -> np.ndarray:
        """Return the random inputs (m, columns) of episodes (m,)."""
        design = self._plan.description.design
        if not isinstance(design, OF_DISTRIBUTIONS):
            raise StudyError(
                f"design is {design.type!r}, which does not draw from the distributions of the study, so it has no "
                "values for further episodes; expected 'random', 'latin_hypercube' or 'sobol'. Make the study with "
                "design='random'"
            )
        pairs = two_uniforms(self.seed, numbers[:, None], DRAW_CHANNEL, np.arange(-(-self.columns // 2)))
        points = np.stack(pairs, -1).reshape(numbers.size, 2 * pairs[0].shape[1])
        return self._plan.drawn.values(points[:, : self.columns])

    def drawn(self, numbers: np.ndarray) -> DrawnSamples:
        plan, values = self._plan, self.values(numbers)
        is_valid = plan.valid(values)
        status = np.where(is_valid, int(Status.DONE), int(Status.INVALID_PARAMETERS))
        samples = plan.samples(values[is_valid], numbers[is_valid])
        many = samples.build()
        q, qd = samples.initial_states(many)
        is_assembled = ~np.isnan(q).any(-1)
        if not is_assembled.all():
            status[np.flatnonzero(is_valid)[~is_assembled]] = int(Status.NOT_ASSEMBLED)
            many = many[is_assembled] if many.batch_shape else many
        return DrawnSamples(values, status, many, (q[is_assembled], qd[is_assembled], samples.tau[is_assembled]))

    def actions(self, values: np.ndarray, numbers: np.ndarray, end: float) -> tuple[list[Any], list[Any]]:
        simulation = self._plan.nominal.simulation.model_copy(update={"duration": end})
        plan = replace(self._plan, nominal=replace(self._plan.nominal, simulation=simulation))
        samples = plan.samples(values, numbers)
        return samples.drives, samples.forces
