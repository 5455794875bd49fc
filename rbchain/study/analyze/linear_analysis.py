"""Gradients and control variates of a finished study for its report: the results of a linear measure."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...errors import StudyError
from ..plan.plan import Plan
from ..run.executors import Executor, local
from ..store.store import Store
from .control_variates import controlled_means
from .gradients import compute_gradients, motions_for

SAMPLES_PER_MOTION = 10  # gradients add at most a tenth to the simulations of a study
MOST_NUMBERS = 1 << 24  # random inputs in memory
MOST_WORK = 1 << 30  # measures times samples times squared columns: the regressions take about a second


def linear_analysis(plan: Plan, store: Store, executor: Executor) -> dict[str, Any]:
    """Return gradients and control variates of all measures for JSON.

    The keys "gradients" and "control_variates" are missing if the study has none, or if they would take much time
    compared with the study. "reasons" has the same keys. It states why the study has none, or why measures are missing.
    """
    found: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    names, columns = [measure.name for measure in plan.measures], len(plan.columns)
    if not (names and columns):
        return found
    if SAMPLES_PER_MOTION * motions_for(plan) <= store.samples:
        try:
            found["gradients"] = _gradients(plan, names, executor, _motions_per_chunk(plan, store, executor))
        except Exception as error:  # a user's function may raise any error at the means
            reasons["gradients"] = _reason(error)
    if store.samples * columns <= MOST_NUMBERS and len(names) * store.samples * columns**2 <= MOST_WORK:
        try:
            found["control_variates"] = _control_variates(plan, names, store)
        except StudyError as error:  # for example of samples that are not independent
            reasons["control_variates"] = _reason(error)
        else:
            omitted = [repr(name) for name in names if name not in found["control_variates"]]
            if omitted:
                reasons["control_variates"] = (
                    f"Control variates need all samples, but some are not finite: {', '.join(omitted)}."
                )
    return found | ({"reasons": reasons} if reasons else {})


def _reason(error: Exception) -> str:
    """Return the first sentence of an error."""
    text = str(error) if isinstance(error, StudyError) else f"{type(error).__name__}: {error}"
    return text.partition(". ")[0].rstrip(".") + "."


def _motions_per_chunk(plan: Plan, store: Store, executor: Executor) -> int:
    """Return the chunk size for gradients: the study's chunk size, or less to give work to all workers."""
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
    """Return the control variates of the measures that are finite in all samples."""
    chunks = [store.read(chunk, ["parameters", "status", *names]) for chunk in range(store.chunks)]
    values = {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}
    measures = {name: values[name] for name in names}
    finite = {name: values for name, values in measures.items() if np.isfinite(values).all()}
    # if no measure is finite, the error of `controlled_means` states why
    estimates, _ = controlled_means(plan, values["parameters"], values["status"], finite or measures)
    labels = ("mean", "half_width", "plain_mean", "plain_half_width", "factor")
    return {
        name: {label: _plain(value) for label, value in zip(labels, of_one, strict=True)}
        for name, of_one in zip(finite, estimates.tolist(), strict=True)
    }


def _plain(values: Any) -> Any:
    """Return values for JSON, with None in place of NaN and infinity."""
    if np.ndim(values):
        return [_plain(value) for value in np.asarray(values).tolist()]
    return float(values) if math.isfinite(values) else None
