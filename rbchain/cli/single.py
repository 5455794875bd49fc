"""`rbchain simulate`, `info`, `view` and `convert`: commands for one mechanism."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.tree import Tree

from ..common.progress import progress
from ..errors import Status
from ..model.constraint_fields import constraints_of, text_of
from ..simulate.methods import METHODS, names_of
from .convert import add_convert
from .output import EXIT_OK, EXIT_SOME_FAILED, LONGEST_LINE, Renamed, check_state_options, help_texts, writable
from .states import initial_states, numbers, with_defaults
from .view import add_view

if TYPE_CHECKING:
    from ..facade.model import Model
    from ..simulate.trajectory import Trajectory

SAMPLES_PER_PIECE = 1000


def add_single(commands: Any) -> None:
    """Add the commands `simulate`, `info`, `view` and `convert` to the parser."""
    file = argparse.ArgumentParser(add_help=False)
    file.add_argument("file", metavar="FILE", help="mechanism: a URDF, SDF, MJCF (.xml) or TOML file")
    file.add_argument(
        "--nonphysical-inertia",
        choices=("warn", "refuse"),
        default="warn",
        help="whether to warn about an inertia that is physically impossible, or to stop with an error (default: warn)",
    )
    file.add_argument(
        "--free-base",
        action="store_true",
        help="let the root link of a URDF or SDF file float (default: fixed to the world)",
    )
    file.add_argument(
        "--density",
        type=_density,
        help="density in kg/m^3, or material such as steel, of moving bodies of a URDF file that have no mass",
    )
    simulate = _add_simulate(commands, file)
    info = commands.add_parser(
        "info",
        parents=[file],
        help="show the tree of bodies and joints",
        **help_texts(
            "Show the tree of bodies and joints, with masses and fixed frames, and the constraints.",
            "rbchain info examples/puma560.urdf",
            "rbchain info drone.urdf --free-base",
        ),
    )
    info.set_defaults(command=_info)
    add_view(commands, file, _model)
    add_convert(commands, file, _model)
    for command in (simulate, info):
        command.set_defaults(subject=_model, when_interrupted="nothing was saved")


def _add_simulate(commands: Any, file: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add the command `simulate` to the parser."""
    adaptive = names_of(lambda method: method.is_adaptive, last="and", quote="")
    fixed = names_of(lambda method: not method.is_adaptive, last="and", quote="")
    simulate = commands.add_parser(
        "simulate",
        parents=[file],
        help="simulate a mechanism with its drives from random or given initial states",
        **help_texts(
            "Simulate a batch of samples with random initial states, or one sample from a given state, with the drives "
            "of the mechanism. Print the number of steps and the accuracy.",
            "rbchain simulate examples/puma560.urdf --batch 10000 --duration 2 --spread 0.2 --seed 1 --out swing.npz",
            "rbchain simulate arm.urdf --q 0.5,-0.2 --qd 0,1 --duration 10 --method rk4 --step 1e-3",
        ),
    )
    simulate.add_argument("--batch", type=int, help="number of samples (default: 1000, or 1 with --q or --qd)")
    simulate.add_argument("--duration", type=float, default=1.0, help="duration of the simulation in s (default: 1)")
    simulate.add_argument(
        "--spread",
        type=float,
        help="standard deviation of the initial positions, in rad or m, and of the initial velocities, in rad/s or "
        "m/s, from --q and --qd (default: 0.1, or 0 with --q or --qd)",
    )
    simulate.add_argument(
        "--q",
        type=numbers,
        metavar="Q,Q,...",
        help="initial positions in rad or m, in the order of the joints; write --q=-0.1,0.2 if the first one is "
        "negative. Closed loops start from the nearest state that satisfies the constraints (default: neutral)",
    )
    simulate.add_argument(
        "--qd", type=numbers, metavar="QD,QD,...", help="initial velocities in rad/s or m/s (default: 0)"
    )
    simulate.add_argument("--seed", type=int, default=0, help="seed of the random numbers (default: 0)")
    simulate.add_argument(
        "--method",
        choices=tuple(METHODS),
        default="rk45",
        help=f"integration method: {adaptive} adapt their steps (rosenbrock and radau are for stiff systems); "
        f"{fixed} have steps of a fixed length (default: rk45)",
    )
    _add_settings_of_steps(simulate, adaptive, fixed)
    simulate.add_argument(
        "--save-at",
        type=int,
        help="number of saved times of each trajectory (default: 101, or at most 101 ends of fixed steps)",
    )
    simulate.add_argument("--samples", action=Renamed, const="--save-at")
    simulate.add_argument("--out", metavar="FILE.npz", help="file for the trajectory, as Trajectory.save writes it")
    simulate.set_defaults(command=_simulate)
    return simulate


def _add_settings_of_steps(simulate: argparse.ArgumentParser, adaptive: str, fixed: str) -> None:
    """Add the options of the steps of both kinds of methods, which are given as text."""
    simulate.add_argument("--step", type=float, help=f"step of {fixed} in s; these methods require it")
    simulate.add_argument("--rtol", type=float, help=f"relative tolerance of {adaptive} (default: 1e-8)")
    simulate.add_argument(
        "--atol",
        type=float,
        help=f"absolute tolerance of {adaptive}, or largest residual of the contacts of moreau in m/s or rad/s "
        "(default: 1e-10)",
    )
    simulate.add_argument("--max-step", type=float, help=f"longest step of {adaptive} in s (default: none)")
    simulate.add_argument(
        "--max-steps",
        type=int,
        help=f"largest number of steps of a sample of {adaptive} (default: 10 million)",
    )


def _model(options: argparse.Namespace) -> Model:
    from .. import Free, load

    base = Free() if options.free_base else None
    return load(options.file, base=base, nonphysical_inertia=options.nonphysical_inertia, density=options.density)


def _density(text: str) -> float | str:
    """Return a number, or the name of a material."""
    try:
        return float(text)
    except ValueError:
        return text


def _simulate(options: argparse.Namespace, model: Model, console: Console) -> int:
    """Simulate the batch in pieces, so that the progress bar advances, then save and report."""
    settings = _settings(options)
    # springs and dampers move bodies without inertia in implicit steps, where the error of the energy is not known
    settings["energy_error"] = not (model.bodies_without_inertia and METHODS[options.method].is_implicit_in_joints)
    out = writable(options.out)
    q0, qd0 = initial_states(options, model)
    pieces = []
    settings["on_failure"] = "ignore"  # the report contains the message
    model.simulate(q0[:1], qd0[:1], 1e-6, **settings)  # compiles now, so that compilation is not timed
    started = time.perf_counter()
    with progress(f"Simulating {model.name}", total=options.batch, after=0.0) as work:
        for first in range(0, options.batch, SAMPLES_PER_PIECE):
            piece = slice(first, first + SAMPLES_PER_PIECE)
            pieces.append(model.simulate(q0[piece], qd0[piece], options.duration, **settings))
            work.advance(len(q0[piece]))
    seconds = time.perf_counter() - started
    motion = _joined(model, pieces)
    if out:
        motion.save(out)
    console.print(_report(model, motion, seconds))
    if out:
        console.print(f"saved {out}", markup=False, highlight=False, soft_wrap=True)
    if not motion.success or motion.is_stiff.any() or motion.beyond_limits.any() or motion.oscillates.any():
        console.print(motion.message, markup=False)
    return EXIT_OK if motion.success else EXIT_SOME_FAILED


def _joined(model: Model, pieces: Sequence[Trajectory]) -> Trajectory:
    """Return the trajectory of a batch that was simulated in pieces, without forces and events."""
    from ..simulate.parts_of_motions import OF_SAMPLES
    from ..simulate.trajectory import Trajectory

    def together(name: str) -> np.ndarray:
        return np.concatenate([getattr(piece, name) for piece in pieces])

    arrays: dict[str, Any] = {name: together(name) for name in OF_SAMPLES}
    return Trajectory(
        t=pieces[0].t,
        model=model,
        **arrays,
        _energy_error=together("energy_error") if pieces[0].has_energy_error else None,
        _compute_tau_and_qdd=lambda: np.concatenate([together("tau"), together("qdd")], axis=-1),
    )


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of `Model.simulate`, once the options are checked that it does not check itself."""
    with_defaults(options)
    check_state_options(options)
    if options.save_at is not None and options.save_at < 2:
        raise ValueError(f"--save-at is {options.save_at}; expected a whole number of at least 2")
    settings = {"method": options.method, "save_at": options.save_at}
    settings |= {name: getattr(options, name) for name in ("rtol", "atol", "max_step")}
    if not METHODS[options.method].is_adaptive:
        if options.step is None or not 0.0 < options.step < np.inf:
            found = "missing" if options.step is None else options.step
            raise ValueError(
                f"--step is {found}; --method {options.method} needs a number of seconds above 0, such as --step 1e-3"
            )
        if options.max_steps is not None:
            raise ValueError(
                f"--max-steps is {options.max_steps}, but --step determines the number of steps of --method "
                f"{options.method}; remove --max-steps"
            )
        return settings | {"step": options.step}
    if options.step is not None:
        raise ValueError(
            f"--step is {options.step}, but --method {options.method} chooses its own steps; remove --step, or add "
            "--method rk4"
        )
    return settings if options.max_steps is None else settings | {"max_steps": options.max_steps}


def _report(model: Model, motion: Trajectory, seconds: float) -> Table:
    """Return a table of the steps, the accuracy and the failures."""
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
        if motion.has_energy_error:
            table.add_row("worst energy error", _energy_error(motion.energy_error[finished], model.energy(q, qd)[0]))
        residual = np.abs(model.force_balance_residual(q, qd, np.zeros(model.nv)))
        table.add_row(
            "worst force-balance residual", f"{residual[..., :3].max():.1e} N, {residual[..., 3:].max():.1e} N m"
        )
    table.add_row("failures", f"{int((~finished).sum()):,}")
    return table


def _energy_error(error: np.ndarray, kinetic: np.ndarray) -> str:
    """Describe the error of the energy that is largest relative to the kinetic energy; (samples, times) arrays, J."""
    error, largest = np.abs(error).max(1), kinetic.max(1)
    relative = error / np.where(largest > 0.0, largest, 1.0)
    worst = int(np.argmax(relative))
    return f"{relative[worst]:.1e} of the largest kinetic energy, {error[worst]:.1e} J"


def _info(options: argparse.Namespace, model: Model, console: Console) -> int:
    """Print the tree with joints, masses and fixed frames, and the constraints."""
    console.width = LONGEST_LINE  # a terminal wraps the lines of a deep tree; rich would cut them
    mass = model.mass.sum()
    head = f"{model.name}: {model.n_bodies} bodies, {mass:.6g} kg, gravity {model.gravity.tolist()} m/s^2"
    console.print(head, markup=False, highlight=False, soft_wrap=True)
    branches = {-1: Tree("world")}
    for i, body in enumerate(model.body_names):
        k, kind = model.velocity_index[i], model.joint_types[i]
        joint = f"{escape(model.joint_names[i])}: {kind}"
        # a planar joint has three axes; show the axis of the rotation
        if kind in ("revolute", "prismatic", "screw", "planar"):
            joint += ", axis ({})".format(" ".join(f"{x:.4g}" for x in model.axis[k + 2 * (kind == "planar")]))
        if kind == "screw":
            joint += f", pitch {model.pitch[k]:.4g} m/rad"
        branch = branches[int(model.parent[i])]
        branches[i] = branch.add(f"{escape(body)}  [dim]{joint}; {model.mass[i]:.4g} kg[/dim]")
    for name, carrier in model.fixed_frames.items():
        branches[carrier].add(f"[dim]frame {escape(name)}[/dim]")
    console.print(branches[-1], soft_wrap=True)
    if model.constraint_names:
        constraints = Tree("constraints")
        for constraint in constraints_of(model.description):
            constraints.add(f"{escape(constraint.name)}  [dim]{escape(text_of(constraint))}[/dim]")
        console.print(constraints, soft_wrap=True)
    return EXIT_OK
