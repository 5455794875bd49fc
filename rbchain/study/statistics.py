"""Statistics of what streams by: moments, extremes, and quantiles, in memory that does not grow with the samples."""

import numpy as np
from scipy import stats

BLOCK = 1024  # samples: what is added at once, so that no sum depends on how the samples came in chunks
BINS = 8192  # of a quantile's histogram, or fewer where there are so many columns
HISTOGRAM_BYTES, FEWEST_BINS = 1 << 26, 256
REACH = 24.0  # of the transformed numbers: e^24 / 2 spreads, some 1e10


class Moments:
    """Count, mean, variance and extremes of columns of numbers, NaN left out.

    Blocks are merged as Chan, Golub and LeVeque (1979, "Updating formulae and a pairwise algorithm for computing sample
    variances") do it, so that nothing cancels.
    """

    def __init__(self, columns):
        self.count = np.zeros(columns, np.int64)
        self.mean, self.squares = np.zeros(columns), np.zeros(columns)
        self.least, self.greatest = np.full(columns, np.inf), np.full(columns, -np.inf)

    def add(self, block):
        """Take in a block (samples, columns)."""
        there = np.isfinite(block)
        count = there.sum(0)
        filled = np.where(there, block, 0.0)
        mean = filled.sum(0) / np.maximum(count, 1)
        squares = np.where(there, (block - mean) ** 2, 0.0).sum(0)
        total = self.count + count
        step = mean - self.mean
        share = count / np.maximum(total, 1)
        self.mean = self.mean + step * share
        self.squares = self.squares + squares + step**2 * self.count * share
        self.count = total
        self.least = np.minimum(self.least, np.where(there, block, np.inf).min(0, initial=np.inf))
        self.greatest = np.maximum(self.greatest, np.where(there, block, -np.inf).max(0, initial=-np.inf))

    @property
    def variance(self):
        """Unbiased; NaN of fewer than two."""
        return np.where(self.count > 1, self.squares / np.maximum(self.count - 1, 1), np.nan)

    def half_width(self, confidence):
        """Half of the confidence interval of the mean, Student's."""
        quantile = stats.t.ppf(0.5 + confidence / 2, np.maximum(self.count - 1, 1))
        return np.where(self.count > 1, quantile * np.sqrt(self.variance / np.maximum(self.count, 1)), np.inf)


class Quantiles:
    """Quantiles of columns of numbers, NaN left out, from histograms whose bins grow away from the middle.

    The first block says where the middle m and the spread s of each column are; then x falls into bins of equal width
    in arcsinh((x - m) / s). Counts are whole numbers, so their sums do not depend on any order, and a quantile is known
    to `error`: within half a bin, 0.3 % of the spread near the middle, and 0.3 % of the distance from it far away; of
    more than a thousand columns less, for the counts to stay within HISTOGRAM_BYTES.
    """

    def __init__(self, columns):
        self.middle = None
        self.bins = int(np.clip(HISTOGRAM_BYTES // (8 * max(columns, 1)), FEWEST_BINS, BINS))
        self.width = 2 * REACH / self.bins
        self.counts = np.zeros((columns, self.bins), np.int64)

    def add(self, block):
        """Take in a block (samples, columns)."""
        if self.middle is None:
            self._look_at(block)
        scaled = np.arcsinh((block - self.middle) / self.spread)
        bins = np.clip((np.where(np.isfinite(scaled), scaled, 0.0) + REACH) / self.width, 0, self.bins - 1).astype(
            np.int64
        )
        columns = np.arange(block.shape[1])
        flat = (bins + columns * self.bins)[np.isfinite(scaled)]
        self.counts += np.bincount(flat, minlength=self.counts.size).reshape(self.counts.shape)

    def _look_at(self, block):
        """Find the middle and the spread of each column of the first block."""
        there = [column[np.isfinite(column)] for column in block.T]
        self.middle = np.array([np.median(column) if column.size else 0.0 for column in there])
        with np.errstate(over="ignore"):
            spread = np.array([column.std() if column.size else 0.0 for column in there])
        self.spread = np.clip(spread, 1e-12 * np.maximum(np.abs(self.middle), 1.0), np.finfo(float).max / 1e12)

    def _value(self, scaled):
        return self.middle + self.spread * np.sinh(scaled)

    def quantile(self, p):
        """The p-quantile of each column, and how far it may be off."""
        total = self.counts.sum(-1)
        cumulated = self.counts.cumsum(-1)
        bins = (cumulated < np.ceil(p * total)[:, None]).sum(-1)
        scaled = (np.minimum(bins, self.bins - 1) + 0.5) * self.width - REACH
        found = np.where(total > 0, self._value(scaled), np.nan)
        error = self.width / 2 * self.spread * np.cosh(np.abs(scaled) + self.width / 2)
        error += 4 * np.finfo(float).eps * np.abs(found)  # of the sum itself
        return found, np.where(total > 0, error, np.nan)

    def histogram(self, column, bins=40):
        """Counts of one column in `bins` equal bins that hold all of it, and their edges."""
        used = np.flatnonzero(self.counts[column])
        if used.size == 0:
            return np.zeros(bins, np.int64), np.linspace(0.0, 1.0, bins + 1)
        edges = self.middle[column] + self.spread[column] * np.sinh(np.arange(self.bins + 1) * self.width - REACH)
        centers = (edges[used] + edges[used + 1]) / 2
        return np.histogram(centers, np.linspace(edges[used[0]], edges[used[-1] + 1], bins + 1),
                            weights=self.counts[column, used])  # fmt: skip


def proportion_interval(failures, count, confidence=0.95):
    """Wilson's (1927) confidence interval of a probability, from how often something happened."""
    if count == 0:
        return 0.0, 1.0
    interval = stats.binomtest(int(failures), int(count)).proportion_ci(confidence, method="wilson")
    return float(interval.low), float(interval.high)


class Statistics:
    """Statistics of all outputs of a study, sample after sample.

    Samples are taken in blocks that begin at multiples of BLOCK, whatever chunks they come in: the same samples give
    the same statistics to the last bit.
    """

    QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)

    def __init__(self, plan):
        sizes = plan.sizes()
        self.variables = [v for v in plan.variables if v.dtype is np.float64 and v.name != "end_time"]
        self.shapes = {v.name: tuple(sizes[d] for d in v.dims) for v in self.variables}
        columns = {name: int(np.prod(shape)) for name, shape in self.shapes.items()}
        self.moments = {name: Moments(n) for name, n in columns.items()}
        self.quantiles = {name: Quantiles(n) for name, n in columns.items()}
        self.count = self.failures = 0
        self._waiting, self._waiting_count = [], 0

    def add(self, outputs, watch=None):
        """Take in the outputs of the samples that come next; how many of all make `watch(self)` true, or None."""
        self._waiting.append(outputs)
        self._waiting_count += len(outputs["status"])
        while self._waiting_count >= BLOCK:
            self._take(BLOCK)
            if watch is not None and watch(self):
                return self.count
        return None

    def finish(self):
        """Take in what is left of an unfinished block."""
        if self._waiting_count:
            self._take(self._waiting_count)

    def _take(self, size):
        if len(self._waiting) > 1:
            self._waiting = [{name: np.concatenate([w[name] for w in self._waiting]) for name in self._waiting[0]}]
        joined = self._waiting[0]
        block = {name: values[:size] for name, values in joined.items()}
        self._waiting = [{name: values[size:] for name, values in joined.items()}]
        self._waiting_count -= size
        self.count += size
        self.failures += int((~np.isin(block["status"], (0, 4))).sum())
        for variable in self.variables:
            columns = block[variable.name].reshape(size, -1)
            if columns.shape[1]:
                self.moments[variable.name].add(columns)
                self.quantiles[variable.name].add(columns)

    def failure_rate(self, confidence=0.95):
        """The share of samples that failed, and its confidence interval."""
        return self.failures / max(self.count, 1), *proportion_interval(self.failures, self.count, confidence)

    def summary(self):
        """Everything, as arrays by name: (statistics of `variable`, ...)."""
        found = {}
        for variable in self.variables:
            name, shape = variable.name, self.shapes[variable.name]
            if 0 in shape:
                continue
            moments, quantiles = self.moments[name], self.quantiles[name]
            levels = [quantiles.quantile(p) for p in self.QUANTILES]
            found[name] = {
                "count": moments.count.reshape(shape),
                "mean": np.where(moments.count > 0, moments.mean, np.nan).reshape(shape),
                "variance": moments.variance.reshape(shape),
                "min": np.where(moments.count > 0, moments.least, np.nan).reshape(shape),
                "max": np.where(moments.count > 0, moments.greatest, np.nan).reshape(shape),
                "quantiles": np.stack([x for x, _ in levels]).reshape(-1, *shape),
                "quantile_errors": np.stack([x for _, x in levels]).reshape(-1, *shape),
            }
        return found

    def in_words(self):
        """Everything as JSON can hold it, None where there is no number."""
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


def _plain(values):
    values = np.asarray(values)
    return np.where(np.isfinite(values), values, None).tolist() if values.dtype.kind == "f" else values.tolist()


def is_narrow_enough(stop_when):
    """Whether statistics allow to stop: a function of them, or None."""
    if stop_when is None:
        return None

    def watch(statistics):
        if stop_when.measure == "failure rate":
            _, low, high = statistics.failure_rate(stop_when.confidence)
            return (high - low) / 2 <= stop_when.half_width
        return bool(statistics.moments[stop_when.measure].half_width(stop_when.confidence)[0] <= stop_when.half_width)

    return watch
