"""Designs: where in the unit cube sample k lies. Sample k is sample k: alone, in any chunk, in any order.

Random numbers come from a counter, not from a state that runs on: Philox (Salmon, Moraes, Dror and Shaw 2011, "Parallel
random numbers: as easy as 1, 2, 3"), whose counter is the number of the sample.
"""

import math
import warnings
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field
from scipy.stats import qmc

from .numbers import Described

WORDS = 4  # of 64 bits that one count of Philox gives
OF_VALUES, OF_STRATA = 0, 1  # second half of the key: which use the numbers are for
SMALLEST = 2.0**-54  # no design gives 0 or 1, where a distribution may have no value


class Design(Described):
    """What all designs share."""

    def check(self, samples: int, columns: int) -> None:
        """A ValueError where the design cannot have so many samples."""


class Random(Design):
    """Independent samples."""

    kind: Literal["random"] = "random"

    def points(self, first: int, last: int, columns: int, seed: int, samples: int) -> np.ndarray:
        """Points (last - first, columns) in the open unit cube."""
        return uniforms(seed, OF_VALUES, first, last, columns)


class LatinHypercube(Design):
    """One sample in each of as many equal strata of every number as there are samples."""

    kind: Literal["latin_hypercube"] = "latin_hypercube"

    def points(self, first: int, last: int, columns: int, seed: int, samples: int) -> np.ndarray:
        strata = [permuted(np.arange(first, last), samples, seed, column) for column in range(columns)]
        within = uniforms(seed, OF_VALUES, first, last, columns)
        return np.clip((np.stack(strata, -1) + within) / samples, SMALLEST, 1.0 - 2 * SMALLEST)


class Sobol(Design):
    """Points of Sobol's sequence, scrambled by SciPy (matrices and a shift); best where there are 2^m samples."""

    kind: Literal["sobol"] = "sobol"

    def check(self, samples: int, columns: int) -> None:
        if columns > qmc.Sobol.MAXDIM or samples > 1 << 30:
            raise ValueError(
                f"a Sobol design of {samples} samples of {columns} numbers; expected at most 2^30 of {qmc.Sobol.MAXDIM}"
            )

    def points(self, first: int, last: int, columns: int, seed: int, samples: int) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that 2^m are best: chunks need not be
            sequence = qmc.Sobol(columns, rng=np.random.default_rng(seed))
            if first:  # SciPy refuses to forward by none
                sequence.fast_forward(first)
            points = sequence.random(last - first)
        return np.clip(points, SMALLEST, 1.0 - 2 * SMALLEST)


class Factorial(Design):
    """Every combination of `levels` values of each number: the middles of equally probable ranges."""

    kind: Literal["factorial"] = "factorial"
    levels: Annotated[int, Field(ge=1, le=1_000_000)] = 3

    def check(self, samples: int, columns: int) -> None:
        if samples != self.levels**columns:
            amount = f" = {self.levels**columns}" if columns * math.log10(self.levels) < 15 else ""
            raise ValueError(
                f"samples is {samples}; expected {self.levels}^{columns}{amount}, all combinations of {self.levels} "
                f"levels of {columns} numbers"
            )

    def points(self, first: int, last: int, columns: int, seed: int, samples: int) -> np.ndarray:
        digits = np.arange(first, last)[:, None] // self.levels ** np.arange(columns) % self.levels
        return (digits + 0.5) / self.levels


class Table(Design):
    """The values themselves, from a file (CSV, Parquet, NumPy's npz or npy) with a column for each number."""

    kind: Literal["table"] = "table"
    file: str


def _by_name(value: Any) -> Any:
    return {"kind": value} if isinstance(value, str) else value


AnyDesign = Annotated[
    Annotated[Random | LatinHypercube | Sobol | Factorial | Table, Field(discriminator="kind")],
    BeforeValidator(_by_name),
]


def uniforms(seed: int, use: int, first: int, last: int, columns: int) -> np.ndarray:
    """Uniform numbers (last - first, columns) in the open interval (0, 1), each of 53 bits."""
    counts = -(-columns // WORDS)
    generator = np.random.Philox(key=np.array([seed, use], np.uint64)).advance(first * counts)
    words = generator.random_raw((last - first) * counts * WORDS).reshape(last - first, counts * WORDS)
    return ((words[:, :columns] >> np.uint64(12)) + 0.5) * 2.0**-52


def permuted(k: np.ndarray, n: int, seed: int, column: int) -> np.ndarray:
    """Where a random permutation of 0 ... n - 1 takes the numbers k.

    A Feistel network of six rounds permutes the next power of four; what falls outside walks on until it is inside
    (Black and Rogaway 2002, "Ciphers with arbitrary finite domains").
    """
    half = max(1, -(-int(n - 1).bit_length() // 2))
    mask = np.uint64((1 << half) - 1)
    keys = np.random.Philox(key=np.array([seed, OF_STRATA], np.uint64)).advance(2 * column).random_raw(6)
    found = np.array(k, np.uint64)
    outside = np.ones(found.shape, bool)
    while outside.any():
        left, right = found[outside] >> np.uint64(half), found[outside] & mask
        for key in keys:
            left, right = right, left ^ (_mixed(right ^ key) & mask)
        found[outside] = left << np.uint64(half) | right
        outside = found >= n
    return found.astype(np.int64)


def _mixed(x: np.ndarray) -> np.ndarray:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
