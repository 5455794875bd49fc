"""Whether a study's settings and actions fit its model: found out without a sample, and before anything is compiled."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..actions.drives import ONE_JOINT
from ..actions.gather import dof_index, gather
from ..errors import StudyError
from .parameters import FLOAT64

if TYPE_CHECKING:
    from .plan import Plan


def check_settings(plan: Plan) -> None:
    """A StudyError where `Model.simulate` refuses the settings: it is asked for the motions of no sample at all."""
    simulate, model = plan.description.simulate, plan.model
    if simulate.method != "rk45" and simulate.step is None:
        raise StudyError(f"simulate.step: method {simulate.method!r} needs one")
    if simulate.method == "rk45" and simulate.step is not None:
        raise StudyError('simulate.step: method "rk45" chooses its own steps; expected none')
    no_states = np.zeros((0, model.nq)), np.zeros((0, model.nv))
    settings = simulate.settings() | {"save_at": plan.times}
    plan.checked("simulate", model.simulate, *no_states, simulate.duration, **settings)


def check_actions(plan: Plan) -> None:
    """A StudyError where drives, forces or events do not fit the model, each alone or all together."""
    simulate = plan.description.simulate

    def gathered(drives: Sequence[Any] = (), forces: Sequence[Any] = (), events: Sequence[Any] = ()) -> object:
        implicit = simulate.method == "implicit"
        return gather(plan.model, (1,), simulate.duration, FLOAT64, drives, forces, events, implicit)

    for kind, actions in {"drives": plan.drives, "forces": plan.forces, "events": plan.events}.items():
        for i, action in enumerate(actions):
            plan.checked(f"{kind}[{i}]", gathered, **{kind: (action,)})
        plan.checked(kind, gathered, **{kind: actions})
    refuse_driven(plan, "simulate.tau", np.flatnonzero(plan.tau))


def refuse_driven(plan: Plan, place: str, forced: Container[int]) -> None:
    """A StudyError where a degree of freedom has both a drive and a constant joint force."""
    for i, drive in enumerate(plan.drives):
        if isinstance(drive, ONE_JOINT) and dof_index(plan.model, "drive", drive.joint, drive.dof) in forced:
            raise StudyError(
                f"{place}: joint {drive.joint!r} has both a drive, drives[{i}], and a joint force; expected one of them"
            )
