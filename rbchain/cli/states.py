"""Initial states: random ones, the same for all commands, and given ones."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ..facade.model import Model


def numbers(text: str) -> np.ndarray:
    """Return the numbers of an option such as --q 0.1,-0.2. An ArgumentTypeError names a wrong number."""
    found = []
    for part in text.split(","):
        try:
            found.append(float(part))
        except ValueError:
            found.append(np.nan)
        if not np.isfinite(found[-1]):
            raise argparse.ArgumentTypeError(
                f"{part.strip()!r} is not a finite number; expected numbers that are separated by commas, such as "
                "0.1,-0.2"
            )
    return np.array(found)


def with_defaults(options: argparse.Namespace) -> None:
    """Set --batch and --spread, if they are missing: one sample without spread for given initial states.

    Raises ValueError if all samples would be the same.
    """
    is_given = options.q is not None or options.qd is not None
    if options.batch is None:
        options.batch = 1 if is_given else 1000
    if options.spread is None:
        if is_given and options.batch > 1:
            raise ValueError(
                f"--batch is {options.batch}, but all samples would start from the same state of --q and --qd; add "
                "--spread, such as --spread 0.1, or remove --batch"
            )
        options.spread = 0.0 if is_given else 0.1


def initial_states(options: argparse.Namespace, model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Return the states of --q and --qd, with normally distributed deviations of --spread.

    Raises ValueError if there is not one value for each position and velocity.
    """
    for name, size, labels, units in (
        ("q", model.nq, model.position_labels, model.position_units),
        ("qd", model.nv, model.velocity_labels, model.velocity_units),
    ):
        given = getattr(options, name)
        if given is not None and len(given) != size:
            known = ", ".join(
                f"{label} in {unit}" if unit else label for label, unit in zip(labels, units, strict=True)
            )
            count = "1 number" if len(given) == 1 else f"{len(given)} numbers"
            raise ValueError(f"--{name} has {count}; expected {size}: {known}")
    return random_states(options, model, options.q, options.qd)


def random_states(
    options: argparse.Namespace, model: Model, q: np.ndarray | None = None, qd: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return normally distributed initial positions and velocities.

    Their centers are q and qd, by default the neutral positions and zero.

    With closed loops, return the nearest states that satisfy the constraints.
    """
    from ..simulate.loops import assembled_states  # imports Numba

    try:
        states = options.spread * np.random.default_rng(options.seed).standard_normal((2, options.batch, model.nv))
    except (MemoryError, ValueError):
        raise ValueError(
            f"--batch is {options.batch}; this machine does not have enough memory for so many samples. Reduce --batch"
        ) from None
    q = np.broadcast_to(model.neutral() if q is None else q, (options.batch, model.nq))
    q = model.integrate(q, states[0]) if options.spread else q  # the given numbers, to the last bit
    qd = states[1] if qd is None else qd + states[1]
    return assembled_states(model, q, qd) if model.kernel_model.is_rigid_row.any() else (q, qd)
