"""Where the coordinates of joints are in another order of the joints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..errors import StateError


def index_arrays(
    own: Mapping[str, tuple[int, int]], frames: Sequence[str], names: Sequence[str], counts: Sequence[int] | None
) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the entries of q and of qd in another order: `Model.joint_order`.

    `own` are a model's joints in its order, each with its numbers of positions and velocities; `frames` are names that
    have no coordinates.
    """
    order = _moving(own, frames, names, counts)
    _check_names(own, order)
    begins = np.cumsum([(0, 0), *(own[name] for name in order)], axis=0)
    begin_of = dict(zip(order, begins[:-1], strict=True))
    index_q, index_v = (
        np.concatenate([begin_of[name][part] + np.arange(own[name][part]) for name in own]) for part in (0, 1)
    )
    return index_q, index_v


def _moving(
    own: Mapping[str, tuple[int, int]], frames: Sequence[str], names: Sequence[str], counts: Sequence[int] | None
) -> list[str]:
    """Names of the joints that have coordinates in the other order."""
    if counts is None:
        fixed = {"universe", *frames} - own.keys()
        return [name for name in names if name not in fixed]
    if len(counts) != len(names):
        raise StateError(f"there are {len(counts)} counts for {len(names)} names; expected one for each")
    for name, count in zip(names, counts, strict=True):
        if count and name in own and count != own[name][0]:
            raise StateError(
                f"joint {name!r} has {count} positions there; expected {own[name][0]}, as here. Replace the cosine and "
                "the sine of an angle by the angle first, and leave out the counts"
            )
    return [name for name, count in zip(names, counts, strict=True) if count]


def _check_names(own: Mapping[str, tuple[int, int]], order: Sequence[str]) -> None:
    found = {
        "missing": [name for name in own if name not in order],
        "unknown": [name for name in order if name not in own],
        "repeated": sorted({name for name in order if order.count(name) > 1}),
    }
    wrong = "; ".join(f"{which}: {those}" for which, those in found.items() if those)
    if wrong:
        raise StateError(f"names of joints are {wrong}; expected each of {list(own)} once")
