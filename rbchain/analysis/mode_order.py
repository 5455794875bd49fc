"""The identity of modes over a batch: modes of different samples correspond if their shapes are similar.

The similarity of two shapes a and b is |conj(a) M b|, with the mass matrix M of the second sample, for shapes of unit
size. The correspondence maximizes the sum of all similarities. Each sample is compared with the first sample and with
the sample before it, and follows the more similar one. So a sweep of a parameter follows a mode while its shape changes
slowly, even where frequencies cross.

Source: Allemang (2003), "The modal assurance criterion - twenty years of use and abuse". Here the mass matrix is the
weight.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def order_by_shape(shapes: np.ndarray, M: np.ndarray) -> np.ndarray:
    """Return the indices (samples, modes) that order the modes of each sample like the modes of the first one.

    `shapes` (samples, modes, nv) are NaN for modes that a sample does not have, and M (samples, nv, nv) are the mass
    matrices.
    """
    from scipy.optimize import linear_sum_assignment  # slow to import, and only this order needs it

    samples, modes, _ = shapes.shape
    found = np.tile(np.arange(modes), (samples, 1))
    used = np.flatnonzero(~np.isnan(shapes).all((1, 2)))
    first: Any = None
    before: Any = None
    for k in used:
        if first is None:
            first = before = shapes[k]
            continue
        options = []
        for reference in (before, first):
            similarity = _similarity(reference, shapes[k], M[k])
            _, columns = linear_sum_assignment(similarity, maximize=True)
            options.append((similarity[range(modes), columns].sum(), columns))
        found[k] = max(options, key=lambda option: option[0])[1]
        ordered = shapes[k, found[k]]
        before = np.where(np.isnan(ordered), before, ordered)  # a mode may be absent for a while
        first = np.where(np.isnan(first), ordered, first)
    return found


def _similarity(reference: np.ndarray, shapes: np.ndarray, M: np.ndarray) -> np.ndarray:
    """Return the similarities (modes, modes) of shapes with reference shapes, both (modes, nv); 0 for absent modes."""
    a, b = (np.nan_to_num(x) for x in (reference, shapes))
    size = np.sqrt(np.einsum("ij,jk,ik->i", a.conj(), M, a).real)
    found: np.ndarray = abs(a.conj() @ M @ b.T) / np.where(size > 0.0, size, 1.0)[:, None]
    return found
