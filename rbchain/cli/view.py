"""`rbchain view`: a mechanism in the browser, or a film of it swinging."""

from __future__ import annotations

import argparse
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

from .output import EXIT_OK, EXIT_SOME_FAILED, writable

if TYPE_CHECKING:
    from ..chain import Model
    from ..view.viewer import Viewer


def add_view(
    commands: Any,
    file: argparse.ArgumentParser,
    load_model: Callable[[argparse.Namespace], Model],
    form: dict[str, Any],
) -> None:
    """Add the command to the parser's."""
    view = commands.add_parser("view", parents=[file], help="see a mechanism, or how it swings, in the browser", **form)
    view.add_argument("--duration", type=float, help="of a free swing to show, in s; without, sliders pose the joints")
    view.add_argument("--batch", type=int, default=1, help="how many copies swing, all but one as ghosts (default: 1)")
    view.add_argument(
        "--spread", type=float, default=0.1, help="standard deviation of their initial states (default: 0.1)"
    )
    view.add_argument("--seed", type=int, default=0, help="of the random numbers (default: 0)")
    view.add_argument("--port", type=int, default=8080, help="the first to try (default: 8080)")
    view.add_argument("--no-browser", action="store_true", help="only print the address")
    view.add_argument("--out", metavar="FILE", help="write a film of the swing instead: .html, .gif, .mp4 or .png")
    view.set_defaults(command=_view, subject=load_model, when_interrupted="the viewer is closed")


def _view(options: argparse.Namespace, model: Model, console: Console) -> int:
    if options.out and options.duration is None:
        raise ValueError("--out writes a film of a swing; expected --duration too")
    if options.duration is None:
        return _watch(model.view(port=options.port), options, console)
    if not 0.0 < options.duration < np.inf:
        raise ValueError(f"--duration is {options.duration}; expected a positive number of seconds")
    if options.out:
        from ..view.film import ENDINGS

        if Path(options.out).suffix not in ENDINGS:
            raise ValueError(f"--out is {options.out}; expected one of {', '.join(ENDINGS)}")
    if options.batch < 1 or not 0.0 <= options.spread < np.inf:
        raise ValueError(f"--batch is {options.batch}, --spread {options.spread}; expected at least 1 and 0")
    rng = np.random.default_rng(options.seed)
    way, speed = options.spread * rng.standard_normal((2, options.batch, model.nv))
    out = writable(options.out, ending="")
    save_at = int(np.clip(60 * options.duration, 2, 2000))
    with console.status("computing; the first time this compiles, for up to a minute"):
        motion = model.simulate(model.integrate(model.neutral(), way), speed, options.duration, save_at=save_at)
    if not motion.success:
        console.print(motion.message, markup=False)
    if not out:
        return _watch(motion.view(port=options.port), options, console)
    written = motion.film(out)
    console.print(f"wrote {written[0]}{f' and {len(written) - 1} more' if written[1:] else ''}", markup=False)
    return EXIT_OK if motion.success else EXIT_SOME_FAILED


def _watch(viewer: Viewer, options: argparse.Namespace, console: Console) -> int:
    """Keep the page up until Ctrl-C."""
    console.print(f"{viewer.url}  (Ctrl-C ends it)", markup=False, highlight=False)
    if not options.no_browser:
        webbrowser.open(viewer.url)
    viewer.wait()
    return EXIT_OK
