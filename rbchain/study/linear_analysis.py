"""Gradients and control variates of a finished study for its report: what a linear measure would have shown."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np

from ..errors import StudyError
from .control_variates import controlled_means
from .executors import Executor, local
from .gradients import compute_gradients, motions_for
from .plan import Plan
from .store import Store

SAMPLES_PER_MOTION = 10  # gradients add at most a tenth to the motions of a study
MOST_NUMBERS = 1 << 24  # drawn numbers in memory
MOST_WORK = 1 << 30  # samples times squared columns: the regression takes about a second


def linear_analysis(plan: Plan, store: Store, executor: Executor) -> dict[str, Any]:
    """Return gradients and control variates of all measures for JSON.

    The keys "gradients" and "control_variates" are missing if the study has none, or if they would take much time
    compared with the study.
    """
    found: dict[str, Any] = {}
    names, columns = [measure.name for measure in plan.measures], len(plan.columns)
    if not (names and columns):
        return found
    if SAMPLES_PER_MOTION * motions_for(plan) <= store.samples:
        # for example a StudyError of a study with noise; and a user's function may raise any error at the means
        with contextlib.suppress(Exception):
            found["gradients"] = _gradients(plan, names, executor, _motions_per_chunk(plan, store, executor))
    if store.samples * columns <= MOST_NUMBERS and store.samples * columns**2 <= MOST_WORK:
        with contextlib.suppress(StudyError):  # for example of samples that are not independent
            found["control_variates"] = _control_variates(plan, names, store)
    return found


def _motions_per_chunk(plan: Plan, store: Store, executor: Executor) -> int:
    """Return the chunk size for gradients: that of the study, or less to give work to all workers."""
    return store.chunk if executor is local else -(-motions_for(plan) // store.chunks)


def _gradients(plan: Plan, names: list[str], executor: Executor, largest: int) -> dict[str, Any]:
    of_all = compute_gradients(plan, names, executor, largest)
    arrays = {
        "gradient": of_all.gradient,
        "error": of_all.error,
        "contribution": of_all.contribution,
        "value": of_all.values,
        "first_order_std": of_all.first_order_std,
    }
    stds = _plain(of_all.stds)
    return {
        name: {key: _plain(values[i]) for key, values in arrays.items()}
        | {"parameter_std": stds, "gradient_units": of_all.gradient_units[i]}
        for i, name in enumerate(names)
    }


def _control_variates(plan: Plan, names: list[str], store: Store) -> dict[str, Any]:
    chunks = [store.read(chunk, ["parameters", "status", *names]) for chunk in range(store.chunks)]
    values = {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}
    measures = {name: values[name] for name in names}
    estimates, _ = controlled_means(plan, values["parameters"], values["status"], measures)
    labels = ("mean", "half_width", "plain_mean", "plain_half_width", "factor")
    return {
        name: {label: _plain(value) for label, value in zip(labels, of_one, strict=True)}
        for name, of_one in zip(names, estimates.tolist(), strict=True)
    }


def _plain(values: Any) -> Any:
    """Return numbers for JSON, with None in place of NaN and infinity."""
    if np.ndim(values):
        return [_plain(value) for value in np.asarray(values).tolist()]
    return float(values) if math.isfinite(values) else None
