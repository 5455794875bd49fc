"""Pictures of motions, by matplotlib."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import StateError, Status

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .trajectory import Trajectory

MOST_LINES = 20  # samples drawn one by one; more are drawn as bands of quantiles
BANDS = ((0.05, 0.95), (0.25, 0.75))
COLOUR = "#1f5a99"


def draw_motion(motion: Trajectory, what: str) -> Figure:
    """A figure of `what` there is in a motion of samples: see `Trajectory.plot`."""
    from matplotlib.figure import Figure

    drawings = {"states": _states, "energy": _energy, "phase": _phase, "steps": _steps}
    if what not in drawings:
        raise StateError(f"what is {what!r}; expected one of {', '.join(drawings)}")
    if what != "steps":
        warn_of_few_times(motion)
    return drawings[what](motion, Figure)


def warn_of_few_times(motion: Trajectory) -> None:
    """Say so where a motion was saved at its ends only: what lies between cannot be shown."""
    if motion.t.size == 2 and motion.steps.max(initial=0) > 1:
        problem = "the motion was saved at its beginning and end only, and is drawn straight between"
        warnings.warn(f"{problem}: give simulate a save_at, such as save_at=101", stacklevel=4)


def _grid(figure_class: type[Figure], rows: int, columns: int, height: float = 2.2) -> tuple[Figure, np.ndarray]:
    figure = figure_class(figsize=(min(4.2 * columns, 12.0), height * rows + 0.4), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False)
    for axes in panels.ravel():
        axes.spines[["top", "right"]].set_visible(False)
    return figure, panels


def _over_time(axes: Any, t: np.ndarray, values: np.ndarray) -> None:
    """Values (samples, times): a line for each sample, or the median and bands of quantiles where they are many."""
    if len(values) <= MOST_LINES:
        axes.plot(t, values.T, color=COLOUR, linewidth=1.2, alpha=1.0 if len(values) == 1 else 0.6)
        return
    levels = sorted({0.5, *(level for band in BANDS for level in band)})
    draw_quantile_bands(axes, t, levels, np.nanquantile(values, levels, axis=0))


def draw_quantile_bands(axes: Any, t: np.ndarray, levels: Sequence[float], quantiles: np.ndarray) -> None:
    """Draw the median and the bands between quantiles (levels, times)."""
    of_level = dict(zip(levels, quantiles, strict=True))
    for low, high in BANDS:
        edges = of_level[low], of_level[high]
        axes.fill_between(t, *edges, color=COLOUR, alpha=0.2, linewidth=0, label=f"{low:.0%} to {high:.0%}")
    axes.plot(t, of_level[0.5], color=COLOUR, linewidth=1.5, label="median")


def _flat(motion: Trajectory, values: np.ndarray) -> np.ndarray:
    """Of a batch of any shape, values with one axis for all samples."""
    return values.reshape(motion.status.size, *values.shape[motion.status.ndim :])


def _states(motion: Trajectory, figure_class: type[Figure]) -> Figure:
    """Every coordinate, and every velocity beside it, over time."""
    model, q, qd = motion.model, _flat(motion, motion.q), _flat(motion, motion.qd)
    figure, panels = _grid(figure_class, max(model.nq, model.nv), 2, height=1.6)
    columns = ((q, model.position_labels, model.position_units), (qd, model.velocity_labels, model.velocity_units))
    for column, (values, labels, units) in enumerate(columns):
        for row, axes in enumerate(panels[:, column]):
            if row >= len(labels):
                axes.set_visible(False)
                continue
            _over_time(axes, motion.t, values[:, :, row])
            rate = " rate" if column else ""
            axes.set_ylabel(f"{labels[row]}{rate}" + (f"\n({units[row]})" if units[row] != "1" else ""))
        panels[min(len(labels), len(panels)) - 1, column].set_xlabel("t (s)")
    if len(q) > MOST_LINES:
        panels[0, 0].legend(frameon=False, fontsize=7)
    return figure


def _energy(motion: Trajectory, figure_class: type[Figure]) -> Figure:
    """Kinetic, potential and total energy, and how far the total is from where it began."""
    kinetic, potential = (_flat(motion, x) for x in motion.model.energy(motion.q, motion.qd))
    total = kinetic + potential
    figure, panels = _grid(figure_class, 2, 2)
    drift = total - total[:, :1]
    named = (
        ("kinetic energy", kinetic),
        ("potential energy", potential),
        ("total energy", total),
        ("change of total energy", drift),
    )
    for axes, (name, values) in zip(panels.ravel(), named, strict=True):
        _over_time(axes, motion.t, values)
        axes.set(ylabel=f"{name} (J)", xlabel="t (s)")
    if len(total) > MOST_LINES:
        panels[0, 0].legend(frameon=False, fontsize=7)
    return figure


def _phase(motion: Trajectory, figure_class: type[Figure]) -> Figure:
    """Velocity against position of every coordinate that is no part of a quaternion."""
    model, q, qd = motion.model, _flat(motion, motion.q), _flat(motion, motion.qd)
    pairs = model.coordinate_pairs
    columns = min(3, max(1, len(pairs)))
    figure, panels = _grid(figure_class, max(1, -(-len(pairs) // columns)), columns, height=3.0)
    for axes in panels.ravel()[len(pairs) :]:
        axes.set_visible(False)
    step = max(1, len(q) // MOST_LINES)
    for axes, (i, j) in zip(panels.ravel(), pairs, strict=False):
        axes.plot(q[::step, :, i].T, qd[::step, :, j].T, color=COLOUR, linewidth=0.9, alpha=0.6)
        axes.plot(q[::step, 0, i], qd[::step, 0, j], ".", color=COLOUR)
        axes.set(
            xlabel=f"{model.position_labels[i]} ({model.position_units[i]})", ylabel=f"({model.velocity_units[j]})"
        )
    return figure


def _steps(motion: Trajectory, figure_class: type[Figure]) -> Figure:
    """How many steps the samples took, how long these were in the mean, and how many were rejected."""
    duration = motion.t[-1] - motion.t[0]
    numbers = {
        "steps taken": motion.steps.ravel(),
        "mean step (s)": duration / np.maximum(motion.steps[motion.status == Status.DONE].ravel(), 1),
        "rejections": motion.rejections.ravel(),
    }
    figure, panels = _grid(figure_class, 1, 3, height=3.0)
    for axes, (name, values) in zip(panels[0], numbers.items(), strict=True):
        whole = values.dtype.kind == "i" and values.size
        axes.hist(values, bins=min(60, int(np.ptp(values)) + 1) if whole else 30, color=COLOUR)
        axes.set(xlabel=name, ylabel="samples")
    return figure
