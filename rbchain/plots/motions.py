"""Plots of trajectories, drawn by matplotlib."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..common.calls import explains_calls
from ..common.misspelled import did_you_mean, one_of
from ..common.progress import progress
from ..errors import ArgumentError, Status, UnknownNameError

if TYPE_CHECKING:
    from ..facade.model import Model
    from ..simulate.trajectory import Trajectory
    from .figure import Figure

MAX_LINES = 20  # samples drawn one by one; more are drawn as bands of quantiles
MAX_ROWS = 20  # of plots of states, if the caller does not select joints
MAX_PHASE_PLOTS = 12  # the same for phase plots
BANDS = ((0.05, 0.95), (0.25, 0.75))
COLOR = "#1f5a99"
#: Colors of samples that are drawn one by one, near those of Okabe and Ito (2008), for people with color blindness.
SAMPLE_COLORS = (COLOR, "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#000000", "#b8a800")
LINE_STYLES = ("-", "--", ":")  # of the first, the second and the third eight samples
COLUMNS_OF_LEGEND = 10
OF_JOINTS = ("states", "phase")


@explains_calls(is_method=True)
def plot(
    motion: Trajectory,
    what: Literal["states", "energy", "phase", "steps"] = "states",
    *,
    joints: Sequence[str] | None = None,
) -> Figure:
    """Plot the trajectory as a matplotlib Figure (extra `plots`), which a notebook shows as the result of a cell.

    Parameters
    ----------
    what : str
        * "states": positions and velocities over time
        * "energy": kinetic, potential and total energy, and the change of the total, or `energy_error` if the
          trajectory has it. The potential energy includes the elastic energy.
        * "phase": velocities against positions
        * "steps": histograms of accepted steps, mean step size and rejected steps; for a single sample, their values

        Up to 20 samples have their own lines. More are drawn as their median and bands of quantiles; "phase" draws
        at most 20 of them.
    joints : sequence of str, optional
        Names of the joints that "states" and "phase" show. If not given, all joints are shown. If these have more
        than 20 degrees of freedom ("phase": 12), evenly spaced ones are shown, and the figure states this.

    Returns
    -------
    Figure

    Raises
    ------
    ArgumentError
        If `what` is not one of these, or `joints` is not a list of names.
    UnknownNameError
        If a name in `joints` is not the name of a moving joint.

    Examples
    --------
    >>> import numpy as np, rbchain as rb
    >>> motion = rb.Model.serial_chain(2).simulate(np.zeros((50, 2)), duration=0.5, save_at=11)
    >>> figure = motion.plot("energy")  # figure.savefig("energy.png") writes a file
    >>> len(figure.axes)
    4
    >>> [axes.get_ylabel() for axes in motion.plot("states", joints=["link2"]).axes]
    ['link2\\n(rad)', 'link2 rate\\n(rad/s)']
    """
    drawings: dict[str, Any] = {"states": _states, "energy": _energy, "phase": _phase, "steps": _steps}
    one_of("what", what, [*drawings], ArgumentError)
    if joints is not None and what not in OF_JOINTS:
        raise ArgumentError(f"joints is {joints!r}, but {what!r} is not plotted by joint. Remove joints")
    if what != "steps":
        warn_of_few_times(motion)
    with progress(f"Drawing the {what} of {motion.model.name}"):
        if what in OF_JOINTS:
            most = MAX_ROWS if what == "states" else MAX_PHASE_PLOTS
            selection = selected_joints(motion.model, joints, most)
            figure = drawings[what](motion, selection)
            if selection.left_out:
                figure.suptitle(f"{selection.note} motion.plot({what!r}, joints=[...])", fontsize=9)
            return figure
        return drawings[what](motion)


@dataclass(frozen=True)
class Selection:
    """Entries of q and of qd of the joints that a plot shows."""

    positions: list[int]
    velocities: list[int]
    shown: int
    left_out: int

    @property
    def note(self) -> str:
        """Sentence on the joints in the plot and how to change them."""
        return f"{self.shown} of {self.shown + self.left_out} joints, evenly spaced. To select joints:"


def selected_joints(model: Model, joints: Sequence[str] | None, most: int) -> Selection:
    """Select the joints with these names.

    If there are none, select all moving joints, or evenly spaced ones that have at most `most` degrees of freedom.
    Raises ArgumentError if `joints` is not a list of names, and UnknownNameError for a name of no moving joint.
    """
    first_q, first_v = [*model.position_index, model.nq], [*model.velocity_index, model.nv]
    moving = [i for i in range(model.n_bodies) if first_v[i + 1] > first_v[i]]
    if joints is None:
        count = min(len(moving), most)
        while True:
            chosen = [moving[k] for k in np.unique(np.linspace(0, len(moving) - 1, count).round().astype(int))]
            if count <= 1 or sum(first_v[i + 1] - first_v[i] for i in chosen) <= most:
                break
            count -= 1
    else:
        by_name = {model.joint_names[i]: i for i in moving}
        some = ", ".join(map(repr, list(by_name)[:6])) + (", ..." if len(by_name) > 6 else "")
        if isinstance(joints, str) or not len(joints) or not all(isinstance(name, str) for name in joints):
            raise ArgumentError(f"joints is {joints!r}; expected a list of names of moving joints: {some}")
        unknown = [name for name in joints if name not in by_name]
        if unknown:
            suggestion = did_you_mean(unknown[0], by_name)
            raise UnknownNameError(
                f"joints contains {unknown[0]!r}; expected names of moving joints: {some}{suggestion}"
            )
        chosen = [by_name[name] for name in joints]
    return Selection(
        [k for i in chosen for k in range(first_q[i], first_q[i + 1])],
        [k for i in chosen for k in range(first_v[i], first_v[i + 1])],
        shown=len(chosen),
        left_out=len(moving) - len(chosen) if joints is None else 0,
    )


def warn_of_few_times(motion: Trajectory) -> None:
    """Warn if at most two states of a trajectory were saved."""
    if motion.t.size <= 2 and motion.steps.max(initial=0) > 1:
        times = " and ".join(f"{t:g}" for t in motion.t)
        problem = f"the trajectory was saved only at {times} s, and is drawn as a point or a straight line"
        warnings.warn(f"{problem}: call simulate without save_at for 101 times", stacklevel=4)


def _grid(rows: int, columns: int, height: float = 2.2) -> tuple[Figure, np.ndarray]:
    from .figure import figure_with_panels

    return figure_with_panels(rows, columns, (min(4.2 * columns, 12.0), height * rows + 0.4))


def _over_time(axes: Any, t: np.ndarray, values: np.ndarray) -> None:
    """Draw values (samples, times): a line for each sample, or the median and bands of quantiles of many samples."""
    if len(values) <= MAX_LINES:
        for k, series in enumerate(values):
            axes.plot(t, series, linewidth=1.2, **_line_of_sample(k))
        return
    levels = sorted({0.5, *(level for band in BANDS for level in band)})
    draw_quantile_bands(axes, t, levels, np.nanquantile(values, levels, axis=0))


def _line_of_sample(k: int) -> dict[str, Any]:
    """Return the color and the style of the line of the k-th sample that is drawn."""
    count = len(SAMPLE_COLORS)
    return {"color": SAMPLE_COLORS[k % count], "linestyle": LINE_STYLES[k // count % len(LINE_STYLES)]}


def _add_legend(figure: Figure, panel: Any, motion: Trajectory, step: int = 1) -> None:
    """Add a legend of the samples, of which each one in `step` is drawn, or of the bands of quantiles of a panel."""
    batch, samples = motion.status.shape, motion.status.size
    if step == 1 and samples > MAX_LINES:
        panel.legend(frameon=False, fontsize=7)
    elif samples > 1:
        indices = [np.unravel_index(k, batch) for k in range(0, samples, step)]
        names = [str(int(i[0]) if len(i) == 1 else tuple(map(int, i))) for i in indices]
        lines = panel.get_lines()[: len(names)]
        settings: dict[str, Any] = {"ncols": COLUMNS_OF_LEGEND, "frameon": False, "fontsize": 7, "title": "sample"}
        figure.legend(lines, names, loc="outside upper center", title_fontsize=7, **settings)


def draw_quantile_bands(axes: Any, t: np.ndarray, levels: Sequence[float], quantiles: np.ndarray) -> None:
    """Draw the median and the bands between quantiles (levels, times)."""
    of_level = dict(zip(levels, quantiles, strict=True))
    for low, high in BANDS:
        edges = of_level[low], of_level[high]
        axes.fill_between(
            t, *edges, color=COLOR, alpha=0.2, linewidth=0, label=f"{100 * low:.0f} % to {100 * high:.0f} %"
        )
    axes.plot(t, of_level[0.5], color=COLOR, linewidth=1.5, label="median")


def _flat(motion: Trajectory, values: np.ndarray) -> np.ndarray:
    """Values (..., times, m) of a batch as (samples, times, m)."""
    return values.reshape(motion.status.size, *values.shape[motion.status.ndim :])


def _states(motion: Trajectory, selection: Selection) -> Figure:
    """Draw positions on the left and velocities on the right."""
    model, q, qd = motion.model, _flat(motion, motion.q), _flat(motion, motion.qd)
    figure, panels = _grid(max(len(selection.positions), len(selection.velocities), 1), 2, height=1.6)
    columns = (
        (q, selection.positions, model.position_labels, model.position_units),
        (qd, selection.velocities, model.velocity_labels, model.velocity_units),
    )
    for column, (values, entries, labels, units) in enumerate(columns):
        for row, axes in enumerate(panels[:, column]):
            if row >= len(entries):
                axes.set_visible(False)
                continue
            entry = entries[row]
            _over_time(axes, motion.t, values[:, :, entry])
            rate = " rate" if column and labels[entry] in model.position_labels else ""
            axes.set_ylabel(f"{labels[entry]}{rate}" + (f"\n({units[entry]})" if units[entry] != "1" else ""))
        panels[min(len(entries), len(panels)) - 1, column].set_xlabel("t (s)")
    _add_legend(figure, panels[0, 0], motion)
    return figure


def _energy(motion: Trajectory) -> Figure:
    """Draw kinetic, potential and total energy, and the error of the energy or, if it is not known, its change.

    The potential energy includes the elastic energy.
    """
    kinetic, gravity = motion.model_of_states.energy(motion.q, motion.qd)
    kinetic, potential = (_flat(motion, x) for x in (kinetic, gravity + motion.elastic_energy))
    total = kinetic + potential
    figure, panels = _grid(2, 2)
    last = ("change of total energy", total - total[:, :1])
    if motion.has_energy_error:
        last = ("error of total energy", _flat(motion, motion.energy_error))
    named = (
        ("kinetic energy", kinetic),
        ("potential energy", potential),
        ("total energy", total),
        last,
    )
    for axes, (name, values) in zip(panels.ravel(), named, strict=True):
        _over_time(axes, motion.t, values)
        axes.set(ylabel=f"{name} (J)", xlabel="t (s)")
    _add_legend(figure, panels[0, 0], motion)
    return figure


def _phase(motion: Trajectory, selection: Selection) -> Figure:
    """Draw velocity against position, for all coordinates except entries of quaternions."""
    model, q, qd = motion.model, _flat(motion, motion.q), _flat(motion, motion.qd)
    shown = set(selection.positions)
    pairs = [pair for pair in model.coordinate_pairs if pair[0] in shown]
    columns = min(3, max(1, len(pairs)))
    figure, panels = _grid(max(1, -(-len(pairs) // columns)), columns, height=3.0)
    for axes in panels.ravel()[len(pairs) :]:
        axes.set_visible(False)
    step = -(-len(q) // MAX_LINES)
    for axes, (i, j) in zip(panels.ravel(), pairs, strict=False):
        drawn = list(enumerate(range(0, len(q), max(1, step))))
        for k, sample in drawn:
            axes.plot(q[sample, :, i], qd[sample, :, j], linewidth=0.9, **_line_of_sample(k))
        for k, sample in drawn:
            axes.plot(q[sample, 0, i], qd[sample, 0, j], ".", color=_line_of_sample(k)["color"])
        axes.set(
            xlabel=f"{model.position_labels[i]} ({model.position_units[i]})", ylabel=f"({model.velocity_units[j]})"
        )
    if pairs:
        _add_legend(figure, panels[0, 0], motion, max(1, step))
    return figure


def _steps(motion: Trajectory) -> Figure:
    """Draw histograms of accepted steps, mean step size and rejected steps, or the numbers of a single sample."""
    from matplotlib.ticker import MaxNLocator

    duration = motion.t[-1] - motion.t[0]
    numbers = {
        "accepted steps": motion.steps.ravel(),
        "mean step (s)": duration / np.maximum(motion.steps[motion.status == Status.DONE].ravel(), 1),
        "rejected steps": motion.rejections.ravel(),
    }
    figure, panels = _grid(1, 3, height=3.0)
    for axes, (name, values) in zip(panels[0], numbers.items(), strict=True):
        if motion.status.size == 1:
            axes.set_axis_off()
            text = f"{values[0]:.4g}" if values.size else "unknown"
            axes.text(0.5, 0.5, f"{name}\n{text}", ha="center", va="center", fontsize=14)
            continue
        is_count = values.dtype.kind == "i"
        bins: Any = 30
        if is_count and values.size:  # each bar contains the same number of counts
            width = 1 + int(np.ptp(values)) // 60
            bins = np.arange(values.min() - 0.5, values.max() + 0.5 + width, width)
        axes.hist(values, bins=bins, color=COLOR)
        axes.set(xlabel=name, ylabel="samples")
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=is_count))
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    return figure
