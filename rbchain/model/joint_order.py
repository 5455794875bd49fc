"""Conversion of q and qd between two orders of the joints, such as the orders of rbchain and of another program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..errors import ArgumentError


def index_arrays(
    own: Mapping[str, tuple[int, int]], frames: Sequence[str], names: Sequence[str], counts: Sequence[int] | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of the model's entries of q and of qd in another order of the joints (`Model.joint_order`).

    `own` has the joints of the model in its order, with their numbers of positions and of velocities. `frames` are
    names without coordinates. `names` are the joints in the other order, and `counts` their numbers of positions.
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
    """Names of the joints with coordinates in the other order."""
    if counts is None:
        fixed = {"universe", *frames} - own.keys()
        return [name for name in names if name not in fixed]
    if len(counts) != len(names):
        raise ArgumentError(
            f"counts has {len(counts)} entries and names has {len(names)}; expected one count for each joint"
        )
    for name, count in zip(names, counts, strict=True):
        if count and name in own and count != own[name][0]:
            raise ArgumentError(
                f"counts: joint {name!r} has {count} positions in the other order; expected {own[name][0]}, as in this "
                "model. If the other program stores an angle as a cosine and a sine, convert them to the angle, and "
                "omit counts"
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
        raise ArgumentError(
            f"names does not match the joints of the model ({wrong}); expected each of {list(own)} once"
        )
