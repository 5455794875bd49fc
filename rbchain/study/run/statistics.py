"""Streaming statistics: moments, extremes and quantiles, in memory that does not grow with the number of samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import special

from ..describe.description import StopWhen
from ..plan.outcomes import has_failed
from ..plan.plan import Plan
from .order_statistics import CONFIDENCE, ranks_around_quantile

BLOCK = 1024  # samples added at once, for all chunk sizes, so that the sums do not depend on the chunks
BINS = 8192  # of the histogram for quantiles, fewer if the study has many columns
HISTOGRAM_BYTES, FEWEST_BINS = 1 << 27, 64  # limit for the counts of all columns together
COLUMNS_AT_ONCE = 256
LEAST_COUNT = 100  # fewest values for a confidence interval of their mean
HALF_RANGE = 24.0  # of the transformed numbers: e^24 / 2 spreads, about 1e10


class Moments:
    """Count, mean, variance and extremes of columns of numbers, without NaN.

    Blocks are merged by the formulas of Chan, Golub and LeVeque (1979, "Updating formulae and a pairwise algorithm for
    computing sample variances"), which avoid cancellation.
    """

    def __init__(self, columns: int) -> None:
        self.count = np.zeros(columns, np.int64)
        self.mean, self.squares = np.zeros(columns), np.zeros(columns)
        self.least, self.greatest = np.full(columns, np.inf), np.full(columns, -np.inf)

    def add(self, block: np.ndarray) -> None:
        """Add a block (samples, columns)."""
        with np.errstate(over="ignore", invalid="ignore"):  # moments of huge numbers may overflow; they become null
            self._add(block)

    def _add(self, block: np.ndarray) -> None:
        finite = np.isfinite(block)
        count = finite.sum(0)
        filled = np.where(finite, block, 0.0)
        mean = filled.sum(0) / np.maximum(count, 1)
        squares = np.where(finite, (block - mean) ** 2, 0.0).sum(0)
        total = self.count + count
        step = mean - self.mean
        share = count / np.maximum(total, 1)
        self.mean = self.mean + step * share
        self.squares = self.squares + squares + step**2 * self.count * share
        self.count = total
        self.least = np.minimum(self.least, np.where(finite, block, np.inf).min(0, initial=np.inf))
        self.greatest = np.maximum(self.greatest, np.where(finite, block, -np.inf).max(0, initial=-np.inf))

    @property
    def variance(self) -> np.ndarray:
        """Unbiased variance; NaN for fewer than two numbers."""
        return np.where(self.count > 1, self.squares / np.maximum(self.count - 1, 1), np.nan)

    def half_width(self, confidence: float) -> np.ndarray:
        """Half of the width of the confidence interval of the mean (Student's t)."""
        quantile = special.stdtrit(np.maximum(self.count - 1, 1), 0.5 + confidence / 2)
        return np.where(self.count > 1, quantile * np.sqrt(self.variance / np.maximum(self.count, 1)), np.inf)


class Quantiles:
    """Quantiles of columns of numbers, without NaN, from histograms whose bins are wider far from the middle.

    The first block in which a column varies determines its middle m and spread s. The bins have equal width in
    arcsinh((x - m) / s). Counts are whole numbers, so their sums do not depend on the order. The error of a quantile is
    half a bin at most. With 8192 bins this is 0.3 % of the spread near the middle, and 0.3 % of the distance from the
    middle far from it.
    """

    def __init__(self, columns: int, bins: int = BINS) -> None:
        self.bins, self.width = bins, 2 * HALF_RANGE / bins
        self.counts = np.zeros((columns, bins), np.int64)
        self.middle, self.spread = np.zeros(columns), np.ones(columns)
        # as long as a column is constant: its value, and the count of this value
        self.varies = np.zeros(columns, bool)
        self.value, self.repeats = np.full(columns, np.nan), np.zeros(columns, np.int64)

    def add(self, block: np.ndarray) -> None:
        """Add a block (samples, columns)."""
        for column in np.flatnonzero(~self.varies):
            self._add_to_constant(column, block[:, column])
        for first in range(0, block.shape[1], COLUMNS_AT_ONCE):
            columns = np.arange(first, min(first + COLUMNS_AT_ONCE, block.shape[1]))
            self._count(columns[self.varies[columns]], block)

    def _add_to_constant(self, column: int | np.integer, values: np.ndarray) -> None:
        """Add values to a constant column. If it varies now, determine its middle and spread."""
        values = values[np.isfinite(values)]
        if values.size == 0:
            return
        if self.repeats[column] == 0:
            self.value[column] = values[0]
        if (values == self.value[column]).all():
            self.repeats[column] += values.size
            return
        self.varies[column] = True
        self.middle[column] = np.median(values)
        with np.errstate(over="ignore"):
            spread = max(values.std(), abs(self.value[column] - self.middle[column]) / 1e6)
        self.spread[column] = np.clip(spread, np.finfo(float).tiny * 1e12, np.finfo(float).max / 1e12)
        earlier = np.arcsinh((self.value[column] - self.middle[column]) / self.spread[column])
        self.counts[column, self._bin(earlier)] += self.repeats[column]

    def _bin(self, scaled: np.ndarray) -> np.ndarray:
        return np.clip((scaled + HALF_RANGE) / self.width, 0, self.bins - 1).astype(np.int64)

    def _count(self, columns: np.ndarray, block: np.ndarray) -> None:
        """Count the numbers of these columns in their bins."""
        if columns.size == 0:
            return
        scaled = np.arcsinh((block[:, columns] - self.middle[columns]) / self.spread[columns])
        finite = np.isfinite(scaled)
        flat = self._bin(np.where(finite, scaled, 0.0)) + np.arange(columns.size) * self.bins
        counts = np.bincount(flat[finite], minlength=columns.size * self.bins)
        self.counts[columns] += counts.reshape(columns.size, self.bins)

    def _value(self, scaled: np.ndarray) -> np.ndarray:
        return self.middle + self.spread * np.sinh(scaled)

    def quantile(self, p: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the p-quantile of each column and its largest error, which is infinite outside of the bins."""
        return self.all_quantiles([p])[0]

    def all_quantiles(self, levels: Sequence[float]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the quantiles of these levels, as `quantile` does."""
        cumulative = self.counts.cumsum(-1)
        return [self._in_bins((cumulative < np.ceil(p * cumulative[:, -1:])).sum(-1)) for p in levels]

    def _in_bins(self, bins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the number in the middle of a bin of each column, and its largest error."""
        bins = np.minimum(bins, self.bins - 1)
        scaled = (bins + 0.5) * self.width - HALF_RANGE
        quantiles = self._value(scaled)
        error = self.width / 2 * self.spread * np.cosh(np.abs(scaled) + self.width / 2)
        error += 4 * np.finfo(float).eps * np.abs(quantiles)  # round-off
        error[(bins == 0) | (bins == self.bins - 1)] = np.inf
        constant = np.where(self.repeats > 0, 0.0, np.nan)
        return np.where(self.varies, quantiles, self.value), np.where(self.varies, error, constant)

    def interval(self, column: int, p: float) -> tuple[float, float]:
        """Return the confidence interval of the p-quantile of the distribution of a column.

        It contains the quantile with a probability of at least CONFIDENCE. Its ends are the edges of the bins of two
        order statistics. They are infinite if there are too few numbers.
        """
        varies = self.varies[column]
        cumulative = self.counts[column].cumsum() if varies else self.repeats[column : column + 1]
        count = int(cumulative[-1])
        low, high = ranks_around_quantile(count, p)
        if not varies:
            value = float(self.value[column])
            return (value if low > 0 else -np.inf), (value if high <= count else np.inf)
        bins = np.searchsorted(cumulative, [low, high]) + np.array([0, 1])
        edges = self.middle[column] + self.spread[column] * np.sinh(bins * self.width - HALF_RANGE)
        edges += np.array([-4, 4]) * np.finfo(float).eps * np.abs(edges)  # round-off
        return (
            float(edges[0]) if low > 0 and bins[0] > 0 else -np.inf,
            float(edges[1]) if high <= count and bins[1] < self.bins else np.inf,
        )

    def histogram(self, column: int, bins: int = 60) -> tuple[np.ndarray, np.ndarray]:
        """Return counts of a column in `bins` bins of equal width, and their edges. Outliers are in the outer bins."""
        if not self.varies[column]:
            value = self.value[column] if self.repeats[column] else 0.0
            return np.array([self.repeats[column]]), np.array([value - 0.5, value + 0.5])
        used = np.flatnonzero(self.counts[column])
        edges = self.middle[column] + self.spread[column] * np.sinh(np.arange(self.bins + 1) * self.width - HALF_RANGE)
        centers = (edges[used] + edges[used + 1]) / 2
        # from the quantile 0.0005 to 0.9995, since outliers would make the bins too wide
        shares = self.counts[column, used].cumsum() / self.counts[column].sum()
        inner = np.flatnonzero((shares >= 0.0005) & (np.append(0.0, shares[:-1]) <= 0.9995))
        limits = edges[used[inner[0]]], edges[used[inner[-1]] + 1]
        held = np.clip(centers, *limits)
        return np.histogram(held, np.linspace(*limits, bins + 1), weights=self.counts[column, used])


def proportion_interval(failures: int, count: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return Wilson's (1927) confidence interval of a probability, from the number of failures."""
    if count == 0:
        return 0.0, 1.0
    z = float(special.ndtri(0.5 + confidence / 2))
    share = failures / count
    middle, half = share + z * z / (2 * count), z * (share * (1.0 - share) / count + (z / (2 * count)) ** 2) ** 0.5
    low, high = (middle - half) / (1.0 + z * z / count), (middle + half) / (1.0 + z * z / count)
    return (low if failures > 0 else 0.0), (high if failures < count else 1.0)


class Statistics:
    """Statistics of all outputs of a study.

    Samples are added in blocks that begin at multiples of BLOCK, for all chunk sizes. So the same samples give the same
    statistics, bit for bit.
    """

    QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)

    def __init__(self, plan: Plan) -> None:
        sizes = plan.sizes()
        self.variables = [v for v in plan.variables if v.dtype is np.float64 and v.name != "end_time"]
        self.shapes = {v.name: tuple(sizes[d] for d in v.dims) for v in self.variables}
        columns = {name: int(np.prod(shape)) for name, shape in self.shapes.items()}
        self.moments = {name: Moments(n) for name, n in columns.items()}
        bins = int(np.clip(HISTOGRAM_BYTES // (8 * max(1, sum(columns.values()))), FEWEST_BINS, BINS))
        self.quantiles = {name: Quantiles(n, bins) for name, n in columns.items()}
        self.count = self.failures = 0
        self._waiting: list[dict[str, np.ndarray]] = []
        self._waiting_count = 0

    def add(self, outputs: dict[str, np.ndarray], watch: Callable[[Statistics], bool] | None = None) -> int | None:
        """Add the outputs of the next samples. Return the number of samples at which `watch(self)` is true, or None."""
        self._waiting.append(outputs)
        self._waiting_count += len(outputs["status"])
        while self._waiting_count >= BLOCK:
            self._take(BLOCK)
            if watch is not None and watch(self):
                return self.count
        return None

    def finish(self) -> None:
        """Add the samples of the last, incomplete block."""
        if self._waiting_count:
            self._take(self._waiting_count)

    def _take(self, size: int) -> None:
        if len(self._waiting) > 1:
            self._waiting = [{name: np.concatenate([w[name] for w in self._waiting]) for name in self._waiting[0]}]
        joined = self._waiting[0]
        block = {name: values[:size] for name, values in joined.items()}
        self._waiting = [{name: values[size:] for name, values in joined.items()}]
        self._waiting_count -= size
        self.count += size
        self.failures += int(has_failed(block["status"]).sum())
        for variable in self.variables:
            columns = block[variable.name].reshape(size, -1)
            if columns.shape[1]:
                self.moments[variable.name].add(columns)
                self.quantiles[variable.name].add(columns)

    def failure_rate(self, confidence: float = 0.95) -> tuple[float, float, float]:
        """Return the share of failed samples, and the ends of its confidence interval."""
        return self.failures / max(self.count, 1), *proportion_interval(self.failures, self.count, confidence)

    def summary(self) -> dict[str, dict[str, np.ndarray]]:
        """Return the statistics of each output as arrays, by name.

        Scalar outputs also have a histogram, and confidence intervals of the mean and of the quantiles. Samples
        of a design other than "random" are not independent, and their intervals are approximate.
        """
        summary = {}
        for variable in self.variables:
            name, shape = variable.name, self.shapes[variable.name]
            if 0 in shape:
                continue
            moments, quantiles = self.moments[name], self.quantiles[name]
            levels = quantiles.all_quantiles(self.QUANTILES)
            summary[name] = {
                "count": moments.count.reshape(shape),
                "mean": np.where(moments.count > 0, moments.mean, np.nan).reshape(shape),
                "variance": moments.variance.reshape(shape),
                "min": np.where(moments.count > 0, moments.least, np.nan).reshape(shape),
                "max": np.where(moments.count > 0, moments.greatest, np.nan).reshape(shape),
                "quantiles": np.stack([x for x, _ in levels]).reshape(-1, *shape),
                "quantile_errors": np.stack([x for _, x in levels]).reshape(-1, *shape),
            }
            if shape == ():
                counts, edges = quantiles.histogram(0)
                half = moments.half_width(CONFIDENCE)
                summary[name] |= {
                    "mean_interval": np.concatenate([moments.mean - half, moments.mean + half]),
                    "quantile_intervals": np.array([quantiles.interval(0, p) for p in self.QUANTILES]),
                    "histogram": counts.astype(np.int64),
                    "histogram_edges": edges,
                }
        return summary

    def as_json(self) -> dict[str, Any]:
        """Return all statistics for JSON, with None in place of NaN and infinity."""
        rate, low, high = self.failure_rate()
        return {
            "samples": self.count,
            "failures": self.failures,
            "failure_rate": {"estimate": rate, "low": low, "high": high, "confidence": 0.95},
            "levels": list(self.QUANTILES),
            "of": {
                name: {key: _plain(value) for key, value in of_one.items()} for name, of_one in self.summary().items()
            },
        }


def _plain(values: np.ndarray) -> list[Any]:
    values = np.asarray(values)
    return (
        np.where(np.isfinite(values), values, np.array(None)).tolist() if values.dtype.kind == "f" else values.tolist()
    )


def is_narrow_enough(stop_when: StopWhen | None) -> Callable[[Statistics], bool] | None:
    """Return a function that returns whether the statistics fulfill the rule; None if there is no rule."""
    if stop_when is None:
        return None

    def watch(statistics: Statistics) -> bool:
        if stop_when.measure == "failure rate":
            _, low, high = statistics.failure_rate(stop_when.confidence)
            return (high - low) / 2 <= stop_when.half_width
        moments = statistics.moments[stop_when.measure]
        if moments.count[0] < LEAST_COUNT or not moments.variance[0] > 0.0:
            return False
        return bool(moments.half_width(stop_when.confidence)[0] <= stop_when.half_width)

    return watch
