"""`rbchain simulate`, `rbchain info` and `rbchain view`: what is done with one mechanism."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.tree import Tree

from .. import Free, Status, load
from ..trajectory import Trajectory
from .output import EXIT_OK, EXIT_SOME_FAILED, writable
from .view import add_view

if TYPE_CHECKING:
    from ..chain import Model

SAMPLES_PER_PIECE = 1000


def add_single(commands: Any, form: dict[str, Any]) -> None:
    """Add the three commands to the parser's."""
    file = argparse.ArgumentParser(add_help=False)
    file.add_argument("file", metavar="FILE", help="the mechanism: a URDF, MJCF (.xml) or TOML file")
    file.add_argument(
        "--nonphysical-inertia",
        choices=("warn", "refuse"),
        default="warn",
        help="what to do about an inertia that no body can have (default: warn)",
    )
    file.add_argument("--free-base", action="store_true", help="let the root link of a URDF float; fixed otherwise")
    simulate = commands.add_parser(
        "simulate", parents=[file], help="let randomly started copies of a mechanism swing freely", **form
    )
    simulate.add_argument("--batch", type=int, default=1000, help="how many copies (default: 1000)")
    simulate.add_argument("--duration", type=float, default=1.0, help="of the motion, in s (default: 1)")
    simulate.add_argument(
        "--spread",
        type=float,
        default=0.1,
        help="standard deviation of the initial positions (rad or m) about neutral ones and of the initial velocities "
        "(per s) about zero (default: 0.1)",
    )
    simulate.add_argument("--seed", type=int, default=0, help="of the random numbers (default: 0)")
    simulate.add_argument("--method", choices=("rk45", "rk4"), default="rk45", help="of integration (default: rk45)")
    simulate.add_argument("--step", type=float, help="of rk4, in s; rk4 needs it")
    simulate.add_argument("--rtol", type=float, default=1e-8, help="relative tolerance of rk45 (default: 1e-8)")
    simulate.add_argument("--atol", type=float, default=1e-10, help="absolute tolerance of rk45 (default: 1e-10)")
    simulate.add_argument("--samples", type=int, default=21, help="saved times of each motion (default: 21)")
    simulate.add_argument("--out", metavar="FILE.npz", help="where to save t, q, qd, status and the counts")
    simulate.set_defaults(command=_simulate)
    info = commands.add_parser("info", parents=[file], help="show the tree of bodies and joints", **form)
    info.set_defaults(command=_info)
    add_view(commands, file, _model, form)
    for command in (simulate, info):
        command.set_defaults(subject=_model, when_interrupted="nothing was saved")


def _model(options: argparse.Namespace) -> Model:
    base = Free() if options.free_base else None
    return load(options.file, base=base, nonphysical_inertia=options.nonphysical_inertia)


def _simulate(options: argparse.Namespace, model: Model, console: Console) -> int:
    """Swing the batch in pieces, so that the bar can move, then save and report."""
    settings = _settings(options)
    out = writable(options.out)
    q0, qd0 = _random_states(options, model)
    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
    pieces = []
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("compiling, the first time", total=options.batch)
        model.simulate(q0[:1], qd0[:1], 1e-6, **settings)
        progress.update(task, description=f"swinging {escape(model.name)}")
        started = time.perf_counter()
        for first in range(0, options.batch, SAMPLES_PER_PIECE):
            piece = slice(first, first + SAMPLES_PER_PIECE)
            pieces.append(model.simulate(q0[piece], qd0[piece], options.duration, **settings))
            progress.advance(task, len(q0[piece]))
        seconds = time.perf_counter() - started
    of_samples = ("q", "qd", "status", "steps", "rejections", "evaluations", "end_time", "end_q", "end_qd")
    arrays: dict[str, Any] = {name: np.concatenate([getattr(piece, name) for piece in pieces]) for name in of_samples}
    motion = Trajectory(t=pieces[0].t, model=model, **arrays)
    if out:
        np.savez(out, t=motion.t, **arrays)
    console.print(_report(model, motion, seconds))
    if out:
        console.print(f"saved {out}", markup=False, highlight=False, soft_wrap=True)
    if motion.success:
        return EXIT_OK
    console.print(motion.message, markup=False)
    return EXIT_SOME_FAILED


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """The settings of `Model.simulate`, once what the command line alone knows is checked."""
    for option, least in (("batch", 1), ("seed", 0), ("samples", 2)):
        if getattr(options, option) < least:
            raise ValueError(f"--{option} is {getattr(options, option)}; expected at least {least}")
    for option in ("duration", "spread"):
        if not 0.0 <= getattr(options, option) < np.inf:
            raise ValueError(f"--{option} is {getattr(options, option)}; expected a finite number, not negative")
    if not options.duration > 0.0:
        raise ValueError(f"--duration is {options.duration}; expected more than 0 s")
    settings = {"method": options.method, "save_at": options.samples}
    if options.method == "rk4":
        if options.step is None or not 0.0 < options.step < np.inf:
            raise ValueError(f"--step is {options.step}; expected a positive number of seconds for --method rk4")
        return settings | {"step": options.step}
    if options.step is not None:
        raise ValueError(f"--step is {options.step}, but --method rk45 chooses its own; expected none, or --method rk4")
    return settings | {"rtol": options.rtol, "atol": options.atol}


def _random_states(options: argparse.Namespace, model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Initial positions and velocities, normally distributed about the neutral positions and about rest."""
    try:
        states = options.spread * np.random.default_rng(options.seed).standard_normal((2, options.batch, model.nv))
    except (MemoryError, ValueError):
        raise ValueError(f"--batch is {options.batch}: there is no memory for so many samples") from None
    return model.integrate(model.neutral(), states[0]), states[1]


def _report(model: Model, motion: Trajectory, seconds: float) -> Table:
    """What happened, in a table."""
    finished = motion.status == Status.DONE
    q, qd = motion.q[finished], motion.qd[finished]
    evaluations = int(motion.evaluations.sum())
    title = f"{escape(model.name)}: {len(finished):,} samples of {model.n_bodies} bodies"
    table = Table(title=title, show_header=False)
    table.add_row("samples", f"{len(finished):,}")
    table.add_row("steps", f"{int(motion.steps.sum()):,}")
    table.add_row("rejections", f"{int(motion.rejections.sum()):,}")
    table.add_row("evaluations", f"{evaluations:,}")
    table.add_row("evaluations per second", f"{evaluations / seconds:,.0f}")
    table.add_row("seconds", f"{seconds:.2f}")
    if finished.any():
        kinetic, potential = model.energy(q, qd)
        total = kinetic + potential
        largest = kinetic.max(1)
        drift = np.abs(total - total[:, :1]).max(1) / np.where(largest > 0.0, largest, 1.0)
        residual = np.abs(model.force_balance_residual(q, qd, np.zeros(model.nv)))
        table.add_row("worst energy drift", f"{drift.max():.1e} of the largest kinetic energy")
        table.add_row(
            "worst force-balance residual", f"{residual[..., :3].max():.1e} N, {residual[..., 3:].max():.1e} N m"
        )
    table.add_row("failures", f"{int((~finished).sum()):,}")
    return table


def _info(options: argparse.Namespace, model: Model, console: Console) -> int:
    """Print the tree with joints, masses and fixed frames."""
    mass = model.mass.sum()
    head = f"{model.name}: {model.n_bodies} bodies, {mass:.6g} kg, gravity {model.gravity.tolist()} m/s^2"
    console.print(head, markup=False, highlight=False, soft_wrap=True)
    branches = {-1: Tree("world")}
    for i, body in enumerate(model.body_names):
        k, kind = model.velocity_index[i], model.joint_types[i]
        joint = f"{escape(model.joint_names[i])}: {kind}"
        if kind in ("revolute", "prismatic", "screw", "planar"):  # a planar joint turns about its last axis
            joint += ", axis ({})".format(" ".join(f"{x:.4g}" for x in model.axis[k + 2 * (kind == "planar")]))
        if kind == "screw":
            joint += f", pitch {model.pitch[k]:.4g} m/rad"
        branch = branches[int(model.parent[i])]
        branches[i] = branch.add(f"{escape(body)}  [dim]{joint}; {model.mass[i]:.4g} kg[/dim]")
    for name, carrier in model.fixed_frames.items():
        branches[carrier].add(f"[dim]frame {escape(name)}[/dim]")
    console.print(branches[-1], soft_wrap=True)
    return EXIT_OK
