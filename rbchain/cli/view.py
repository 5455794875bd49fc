"""`rbchain view`: show a mechanism or its trajectory in the browser, or write an animation."""

from __future__ import annotations

import argparse
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

from ..common.progress import progress
from .output import EXIT_OK, EXIT_SOME_FAILED, check_state_options, help_texts, writable
from .states import random_states

if TYPE_CHECKING:
    from ..facade.model import Model
    from ..view.viewer import Viewer


def add_view(commands: Any, file: argparse.ArgumentParser, load_model: Callable[[argparse.Namespace], Model]) -> None:
    """Add the command `view` to the parser."""
    view = commands.add_parser(
        "view",
        parents=[file],
        help="show a mechanism or its trajectory in the browser, or write an animation",
        **help_texts(
            "Show a mechanism in the browser, with a slider for each joint. With --duration, simulate it from a random "
            "initial state with its drives, and show the trajectory or write an animation.",
            "rbchain view examples/puma560.urdf",
            "rbchain view arm.urdf --duration 2 --batch 50 --out swing.html",
        ),
    )
    view.add_argument("--duration", type=float, help="duration of the simulation in s (default: no simulation)")
    view.add_argument(
        "--batch", type=int, default=1, help="number of samples; all but the first are transparent (default: 1)"
    )
    view.add_argument(
        "--spread", type=float, default=0.1, help="standard deviation of the initial states (default: 0.1)"
    )
    view.add_argument("--seed", type=int, default=0, help="seed of the random numbers (default: 0)")
    view.add_argument("--port", type=int, default=8080, help="first port to try (default: 8080)")
    view.add_argument("--no-browser", action="store_true", help="only print the address of the page")
    view.add_argument("--out", metavar="FILE", help="write an animation (.html, .gif, .mp4 or .png) instead")
    view.set_defaults(command=_view, subject=load_model, when_interrupted="the viewer is closed")


def _view(options: argparse.Namespace, model: Model, console: Console) -> int:
    if options.out and options.duration is None:
        raise ValueError("--out writes a film of a trajectory, but --duration is missing; add it, such as --duration 2")
    if options.duration is None:
        return _watch(model.view(_closed_positions(model), port=options.port), options, console)
    check_state_options(options)
    if options.out:
        from ..view.film import ENDINGS

        if Path(options.out).suffix not in ENDINGS:
            raise ValueError(f"--out is {options.out}; expected a file that ends in one of {', '.join(ENDINGS)}")
    out = writable(options.out, ending="")
    save_at = int(np.clip(60 * options.duration, 2, 2000))
    with progress(f"Simulating {model.name} for {options.duration:g} s"):
        motion = model.simulate(*random_states(options, model), options.duration, save_at=save_at, on_failure="ignore")
    if not motion.success or motion.beyond_limits.any() or motion.oscillates.any():
        console.print(motion.message, markup=False)
    if not out:
        return _watch(motion.view(port=options.port), options, console)
    written = motion.film(out)
    others = f" and {len(written) - 1} more files" if written[1:] else ""
    console.print(f"wrote {written[0]}{others}", markup=False)
    return EXIT_OK if motion.success else EXIT_SOME_FAILED


def _closed_positions(model: Model) -> np.ndarray | None:
    """Return the positions nearest to the neutral ones that satisfy the constraints; None for the neutral ones."""
    if not model.kernel_model.is_rigid_row.any():
        return None
    q = model.assemble(model.neutral(), on_failure="ignore")
    return q if np.isfinite(q).all() else None


def _watch(viewer: Viewer, options: argparse.Namespace, console: Console) -> int:
    """Keep the page open until Ctrl-C."""
    console.print(f"{viewer.url}  (press Ctrl-C to stop)", markup=False, highlight=False)
    if not options.no_browser:
        webbrowser.open(viewer.url)
    viewer.wait()
    return EXIT_OK
