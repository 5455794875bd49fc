"""Write the results of the race as a page with plots, from the records in `results/race.json`.

`python benchmarks/pages.py` writes them again without new measurements.
"""

import json
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("svg")
mpl.rcParams.update({"svg.hashsalt": "rbchain", "svg.fonttype": "none", "font.size": 9, "axes.grid": True})
mpl.rcParams.update({"grid.alpha": 0.3, "axes.spines.top": False, "axes.spines.right": False, "figure.dpi": 100})

import matplotlib.pyplot as plt  # noqa: E402  the backend must be chosen first

# Each program has the same style in all plots.
STYLES = {
    "rbchain": ("#c1272d", "-", "o"),
    "rbchain, float32": ("#e58a8d", "-", "o"),
    "C++, clang++": ("#0b5394", "-", "s"),
    "C++, g++": ("#6fa8dc", "-", "s"),
    "C++ in 4 lanes, clang++": ("#0b5394", "--", "D"),
    "C++ in 8 lanes, clang++": ("#0b5394", "--", "D"),
    "Fortran": ("#674ea7", "-", "v"),
    "Pinocchio C++, clang++": ("#38761d", "-", "^"),
    "Pinocchio C++, g++": ("#93c47d", "-", "^"),
    "Pinocchio, parallel": ("#38761d", "--", "<"),
    "Pinocchio, Python": ("#93c47d", ":", "<"),
    "MuJoCo, batch": ("#b45f06", "-", "x"),
    "MuJoCo, rollout": ("#b45f06", "--", "x"),
    "SciPy RK45 + Pinocchio, Python": ("#777777", ":", "+"),
}


def line(axes, name, x, y, **more):
    color, dashes, marker = STYLES[name]
    axes.plot(x, y, dashes, color=color, marker=marker, markersize=3.5, linewidth=1.3, label=name, **more)


def save(figure, folder, name):
    figure.savefig(folder / f"{name}.svg", bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)


def names_in(records):
    return [name for name in STYLES if any(record["who"] == name for record in records)]


def draw_precision(records, folder):
    """Plot time against error, with a panel for each problem."""
    problems = list(dict.fromkeys(record["problem"] for record in records))
    figure, panels = plt.subplots(2, len(problems), figsize=(10, 8), sharex=True, squeeze=False)
    for row, task in enumerate(("rk4", "rk45")):
        for axes, problem in zip(panels[row], problems, strict=True):
            of = [r for r in records if r["problem"] == problem and r["task"] == task and r["error"] > 0]
            for name in names_in(of):
                mine = [r for r in of if r["who"] == name]
                line(axes, name, [r["error"] for r in mine], [r["seconds"] * 1e6 for r in mine])
            axes.set(xscale="log", yscale="log", title=f"{problem}, {task.upper()}", xlim=(1e-1, 1e-13))
            axes.set(xlabel="error of the positions after 0.5 s (rad)", ylabel="time per sample (us)")
    panels[0][-1].legend(fontsize=7)
    panels[1][-1].legend(fontsize=7)
    save(figure, folder, "precision")


def draw_batches(records, folder):
    """Plot the time per sample against the size of the batch."""
    threads = sorted({record["threads"] for record in records})
    figure, panels = plt.subplots(1, len(threads), figsize=(10, 4), sharey=True, squeeze=False)
    for axes, count in zip(panels[0], threads, strict=True):
        of = [record for record in records if record["threads"] == count]
        for name in names_in(of):
            mine = [record for record in of if record["who"] == name]
            line(axes, name, [r["batch"] for r in mine], [r["seconds"] * 1e9 for r in mine])
        axes.set(xscale="log", yscale="log", xlabel="samples in the batch")
        axes.set(title=f"{count} thread{'s' * (count > 1)}", ylabel="time per sample (ns)")
        axes.legend(fontsize=7)
    save(figure, folder, "batches")


def draw_lengths(records, folder):
    """Plot the time per body against the number of bodies."""
    figure, axes = plt.subplots(figsize=(6.5, 4.5))
    for name in names_in(records):
        mine = [record for record in records if record["who"] == name]
        line(axes, name, [r["n"] for r in mine], [r["seconds"] / r["n"] * 1e9 for r in mine])
    axes.set(xscale="log", yscale="log", xlabel="number of bodies", ylabel="time per body (ns)")
    axes.legend(fontsize=7)
    save(figure, folder, "lengths")


def draw_evaluations(records, folder):
    """Plot the times of forward dynamics as multiples of the time of rbchain."""
    of = [r for r in records if r["task"] == "forward dynamics" and r["who"] in STYLES and r["who"] != "rbchain"]
    problems = list(dict.fromkeys(record["problem"] for record in of))
    names = names_in(of)
    figure, axes = plt.subplots(figsize=(10, 4))
    for i, name in enumerate(names):
        ratios = [ratio(records, problem, "forward dynamics", name) for problem in problems]
        at = np.arange(len(problems)) + (i - len(names) / 2) * 0.8 / len(names)
        axes.bar(
            at, ratios, 0.8 / len(names), color=STYLES[name][0], label=name, hatch="//" * (STYLES[name][1] == "--")
        )
    axes.axhline(1, color=STYLES["rbchain"][0])
    axes.set(yscale="log", ylabel="time divided by the time of rbchain", xticks=range(len(problems)))
    axes.set_xticklabels(problems, rotation=12)
    axes.legend(fontsize=7, ncols=3)
    save(figure, folder, "evaluations")


def find(records, problem, task, name):
    return next((r for r in records if (r["problem"], r["task"], r["who"]) == (problem, task, name)), None)


def ratio(records, problem, task, name):
    """Return the time of a program divided by that of rbchain, or NaN if one is missing."""
    theirs, ours = find(records, problem, task, name), find(records, problem, task, "rbchain")
    return theirs["seconds"] / ours["seconds"] if theirs and ours else np.nan


def quantity(seconds):
    """Format a time with a suitable unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def matrix(records, tasks):
    """Write a table per task with programs as rows and problems as columns."""
    lines = []
    for task in tasks:
        of = [record for record in records if record["task"] == task]
        if not of:
            continue
        problems = list(dict.fromkeys(record["problem"] for record in of))
        lines += ["", f"**{task}**", "", "| | " + " | ".join(problems) + " |", "|---" * (len(problems) + 1) + "|"]
        for name in dict.fromkeys(record["who"] for record in of):
            cells = []
            for problem in problems:
                record = find(of, problem, task, name)
                over = ratio(of, problem, task, name)
                compared = "" if name == "rbchain" or not np.isfinite(over) else f" ({over:.1f})"
                cells.append(f"{quantity(record['seconds'])}{compared}" if record else "")
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def spread(records):
    """Describe the spread of the times and the largest difference between the results."""
    wide = [(r["to"] - r["from"]) / r["seconds"] for r in records if "to" in r]
    compared = [r for r in records if "difference" in r and "float32" not in r["who"]]
    worst = max(compared, key=lambda r: r["difference"])
    return (
        f"The interquartile range of the times is typically {np.median(wide):.0%} of their median. The results of a "
        f"program differ from rbchain's by at most {worst['difference']:.0e} of the largest entry "
        f"({worst['who']}: {worst['task']}, {worst['problem']})."
    )


def exponents(records):
    """Fit the time per sample by a power of the number of bodies, from 7 to 100 and from 100 to 1000."""
    lines = ["", "| | exponent, 7 to 100 | exponent, 100 to 1000 |", "|---|---|---|"]
    for name in dict.fromkeys(record["who"] for record in records):
        slopes = []
        for low, high in ((7, 100), (100, 1000)):
            mine = [r for r in records if r["who"] == name and low <= r["n"] <= high]
            if len(mine) < 2 or mine[-1]["n"] < high:
                slopes.append("")
                continue
            x, y = np.log([r["n"] for r in mine]), np.log([r["seconds"] for r in mine])
            slopes.append(f"{np.polyfit(x, y, 1)[0]:.2f}")
        lines.append(f"| {name} | " + " | ".join(slopes) + " |")
    return lines


def in_batches(records):
    """Tabulate the time per sample for some batch sizes, and fit the time of a call by a power of the batch size."""
    sizes = sorted({record["batch"] for record in records})[::2]
    lines = ["", "| | threads | " + " | ".join(f"{size:,}" for size in sizes) + " |", "|---" * (len(sizes) + 2) + "|"]
    for name, threads in dict.fromkeys((record["who"], record["threads"]) for record in records):
        mine = {r["batch"]: r["seconds"] for r in records if (r["who"], r["threads"]) == (name, threads)}
        cells = [quantity(mine[size]) if size in mine else "" for size in sizes]
        lines.append(f"| {name} | {threads} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "From 1,024 samples, the time of one call is proportional to a power of the batch size. The exponent is:",
        "",
    ]
    for name in dict.fromkeys(record["who"] for record in records):
        mine = [r for r in records if r["who"] == name and r["threads"] == 1 and r["batch"] >= 1024]
        if len(mine) > 2:
            x, y = np.log([r["batch"] for r in mine]), np.log([r["seconds"] * r["batch"] for r in mine])
            lines.append(f"* {name}: {np.polyfit(x, y, 1)[0]:.2f}")
    most = max(sizes)
    ours = {r["threads"]: r["seconds"] for r in records if r["who"] == "rbchain" and r["batch"] == most}
    if len(ours) > 1:
        count = max(ours)
        share = np.log(ours[1] / ours[count]) / np.log(count)
        lines += [
            "",
            f"From 1 to {count} threads, rbchain's time for {most:,} samples is proportional to threads^-{share:.2f}.",
        ]
    return lines


def ahead(records):
    """Tabulate the times at equal error, each program with its faster method."""
    lines = []
    for problem in dict.fromkeys(record["problem"] for record in records):
        of = [r for r in records if r["problem"] == problem and r["error"] > 0]
        lines += [
            "",
            f"*{problem}*: multiples of rbchain's time at the same error, each program with its faster method",
            "",
        ]
        levels = [10.0**-e for e in range(3, 11)]
        lines += [
            "| error | " + " | ".join(f"{level:.0e}" for level in levels) + " |",
            "|---" * (len(levels) + 1) + "|",
        ]
        best = {name: [fastest(of, name, level) for level in levels] for name in names_in(of)}
        for name, times in best.items():
            cells = [
                quantity(t) if name == "rbchain" else f"{t / b:.1f}"
                for t, b in zip(times, best["rbchain"], strict=True)
            ]
            lines.append(f"| {name} | " + " | ".join("" if "nan" in cell else cell for cell in cells) + " |")
    return lines


def fastest(records, name, level):
    """Return the shortest time in which a program reaches this error, by interpolation, or NaN."""
    times = []
    for task in ("rk4", "rk45"):
        mine = sorted((r["error"], r["seconds"]) for r in records if r["who"] == name and r["task"] == task)
        if len(mine) < 2 or not mine[0][0] <= level <= mine[-1][0]:
            continue
        x, y = np.log([error for error, _ in mine]), np.log([seconds for _, seconds in mine])
        times.append(np.exp(np.interp(np.log(level), x, y)))
    return min(times, default=np.nan)


def write(kept, folder):
    """Write `README.md` and the plots for all recorded sections."""
    folder = Path(folder)
    lines = [
        "# Results of the race",
        "",
        "`python benchmarks/race.py` measured these times per sample. `ports/README.md` describes the ports.",
        "The runs of all programs were interleaved on one core, unless a table states the number of threads. The",
        "times are medians. Figures in brackets are multiples of rbchain's time. Slow programs computed fewer samples.",
        "",
        "<!-- tables -->",
    ]
    for name in (name for name in SECTIONS if name in kept):
        section, records = kept[name], kept[name]["records"]
        title, draw, tables = SECTIONS[name]
        lines += ["", f"## {title}", "", f"{section['machine']}; {section['date']}."]
        if draw:
            draw(records, folder)
            lines += ["", f"![{title}]({name}.svg)"]
        lines += tables(records)
    last = list(kept.values())[-1]
    lines += [
        "",
        "## Versions",
        "",
        *(f"* {name}: {number}" for name, number in last["versions"].items()),
    ]
    missing = {tuple(item) for section in kept.values() for item in section["left out"]}
    absent = [f"{name} ({why})" for name, why in sorted(missing)]
    lines += ["", f"Not measured: {', '.join(absent) or 'none'}."]
    (folder / "README.md").write_text("\n".join(lines) + "\n")


TASKS = ("forward dynamics", "inverse dynamics", "mass matrix", "derivatives")


def of_roofline(records):
    peak, *kernels = records
    lines = [
        "",
        f"Peak of this core: {peak['float64'] / 1e9:.1f} GFLOP/s of fused operations in float64,",
        f"{peak['float32'] / 1e9:.1f} GFLOP/s in float32, and {peak['bandwidth'] / 1e9:.1f} GB/s from memory.",
        "Per degree of freedom and sample:",
    ]
    lines += ["", "| | operations | ns | GFLOP/s | of the peak | bytes of arguments and results | of the bandwidth |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for r in kernels:
        numbers = f"{r['flops']:.0f} | {r['seconds'] * 1e9:.1f} | {r['rate'] / 1e9:.1f} | {r['of peak']:.0%}"
        used = r["bytes"] / r["seconds"] / peak["bandwidth"]
        lines.append(f"| {r['who']} | {numbers} | {r['bytes']} | {used:.0%} |")
    return lines


def of_first(records):
    lines = ["", "| | seconds |", "|---|---|"]
    return lines + [f"| {record['who']} | {record['seconds']:.1f} |" for record in records]


SECTIONS = {
    "evaluations": (
        "Dynamics of a batch", draw_evaluations, lambda r: ["", spread(r), *matrix(r, TASKS)],
    ),
    "trajectories": (
        "Simulation of a batch", None, lambda r: ["", spread(r), *matrix(r, ("rk4", "rk45"))],
    ),
    "precision": ("Time against error", draw_precision, ahead),
    "batches": ("Batches of one to a million samples", draw_batches, in_batches),
    "lengths": ("Mechanisms of 2 to 1000 bodies", draw_lengths, exponents),
    "single": ("A single sample", None, lambda r: matrix(r, ("one call", "rk4", "rk45"))),
    "first_results": ("Time to the first result", None, of_first),
    "roofline": ("Share of the peak of the core", None, of_roofline),
}  # fmt: skip

if __name__ == "__main__":
    results = Path(__file__).parent / "results"
    write(json.loads((results / "race.json").read_text()), results)
