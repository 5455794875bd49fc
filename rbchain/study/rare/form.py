"""First-order reliability method (FORM), corrected by importance sampling around the design points."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy import special

from ...errors import StudyError
from .estimates import Estimate, Margins, Stage
from .importance import estimate_from
from .mixtures import Mixture

STEP = 1 / 32  # of the differences, in standard deviations
MOST_ITERATIONS = 50
CLOSE = 1e-3  # margin at a design point, relative to the margin at the medians
ALIGNED = 1e-2  # distance of a design point from the direction of its gradient, relative to its norm
LENGTHS = 0.5 ** np.arange(8)  # of the steps that are tried at once
REACH = 1.2  # distance of the probes for further design points, relative to the first one
LEAST_ANGLE = 0.9  # cosine between two design points below which they count as different
MOST_POINTS = 4
PILOT = 200  # fewest samples of the correction


def form(margins: Margins, dimension: int, seed: int, wanted: float, limit: int) -> Estimate:
    """Estimate the probability of a failure from the failures nearest to the medians, the design points.

    The margin is linearized at the design point u* (Hasofer and Lind 1974; Rackwitz and Fiessler 1978). The probability
    of first order is Phi(-|u*|). Importance sampling from unit normal distributions around the design points corrects
    it, so the estimate has no error of linearization.

    The search uses gradients by central differences, and steps that reduce a merit function (Zhang and Der Kiureghian
    1997). Further design points are searched from failures among 2 d + 1 probes: opposite the first design point, and
    on both sides of each axis.

    Parameters
    ----------
    margins, dimension, seed, wanted, limit
        As for `importance_sampling`.

    Examples
    --------
    >>> found = form(lambda u: 4.75 - u.mean(-1) * 2.0, 4, seed=1, wanted=0.1, limit=20_000)
    >>> bool(abs(found.first_order / 1.017e-6 - 1) < 1e-3), found.interval[0] < 1.017e-6 < found.interval[1]
    (True, True)
    """
    counted = _Counted(margins)
    at_medians = float(counted(np.zeros((1, dimension)))[0])
    scale = abs(at_medians)
    first = _design_point(counted, np.zeros(dimension), scale)
    points = [first]
    distance = float(np.linalg.norm(first))
    if at_medians > 0.0 and distance > 0.0:
        points += _further_points(counted, first, scale)
    distances = np.linalg.norm(points, axis=-1)
    shares = special.ndtr(-distances) / special.ndtr(-distances).sum()
    stages = [Stage(counted.count, 0.0, math.nan)]
    mixture = Mixture(shares, np.array(points))
    estimate = estimate_from(margins, mixture, seed, (PILOT, limit - counted.count), wanted, stages)
    first_order = float(special.ndtr(math.copysign(distance, -at_medians) if at_medians else 0.0))
    return replace(estimate, design_point=first, first_order=first_order)


class _Counted:
    """Margins of finite size, with the number of evaluations."""

    def __init__(self, margins: Margins) -> None:
        self.margins, self.count = margins, 0

    def __call__(self, u: np.ndarray) -> np.ndarray:
        self.count += len(u)
        found = self.margins(u)
        if not np.isfinite(found).all():
            raise StudyError(
                "a sample of the search for the design point has an infinite margin, but FORM needs the gradient of a "
                "finite measure; use method='importance' or method='subset'"
            )
        return found

    def gradient(self, u: np.ndarray) -> np.ndarray:
        """Return the gradient (d,) at u (d,) by central differences."""
        steps = STEP * np.eye(u.size)
        up, down = np.split(self(np.concatenate([u + steps, u - steps])), 2)
        return (up - down) / (2 * STEP)


def _design_point(margins: _Counted, u: np.ndarray, scale: float) -> np.ndarray:
    """Return the nearest point (d,) to the origin with the margin 0, from a start (d,)."""
    found = float(margins(u[None])[0])
    for _ in range(MOST_ITERATIONS):
        gradient = margins.gradient(u)
        squared = float(gradient @ gradient)
        if squared == 0.0:
            raise StudyError(
                "the measure does not change near a point of the search for the design point, but FORM needs its "
                "gradient; use method='importance' or method='subset'"
            )
        projected = (float(gradient @ u) / squared) * gradient
        norm = float(np.linalg.norm(u))
        if abs(found) <= CLOSE * scale and np.linalg.norm(u - projected) <= ALIGNED * max(norm, 1.0):
            return u
        target = projected - (found / squared) * gradient
        penalty = 2.0 * max(norm, float(np.linalg.norm(target))) / math.sqrt(squared) + 1e-12
        tried = u + LENGTHS[:, None] * (target - u)
        of_tried = margins(tried)
        merit = (tried**2).sum(-1) / 2 + penalty * np.abs(of_tried)
        chosen = int(np.argmin(merit))
        u, found = tried[chosen], float(of_tried[chosen])
    raise StudyError(
        f"the search for the design point did not converge in {MOST_ITERATIONS} iterations; the last margin is "
        f"{found:g}, and {scale:g} at the medians. FORM needs a smooth measure; use method='importance'"
    )


def _further_points(margins: _Counted, first: np.ndarray, scale: float) -> list[np.ndarray]:
    """Return design points of other regions of failures, of which a probe is a failure."""
    distance = REACH * float(np.linalg.norm(first))
    axes = np.eye(first.size)
    probes = distance * np.concatenate([-first[None] / np.linalg.norm(first), axes, -axes])
    found = margins(probes)
    points = [first]
    for i in np.argsort(found, kind="stable"):
        if found[i] >= 0.0 or len(points) == MOST_POINTS:
            break
        if max(_cosine(probes[i], point) for point in points) > 1.0 / REACH:  # a region that is known
            continue
        point = _design_point(margins, probes[i], scale)
        if max(_cosine(point, other) for other in points) < LEAST_ANGLE:
            points.append(point)
    return points[1:]


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))
