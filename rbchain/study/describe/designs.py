"""Designs: the point of sample k in the unit cube. It depends on the design, the seed and k only.

Random numbers come from the counter-based generator Philox (Salmon, Moraes, Dror and Shaw 2011, "Parallel random
numbers: as easy as 1, 2, 3"). Its counter is the number of the sample, so any chunk can be drawn without the others.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Protocol, Self

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from ...common.real_arrays import excerpt, real_array
from .named_columns import names_of
from .numbers import Described

WORDS = 4  # words of 64 bits per count of Philox
OF_VALUES, OF_STRATA = 0, 1  # second half of the key of Philox: values and strata use different random numbers
SMALLEST = 2.0**-54  # designs avoid 0 and 1, where distributions may be infinite


class Design(Described):
    """Base class of all designs."""

    internal_names: ClassVar[tuple[str, ...]] = ("type", "check", "points", "can_grow")
    renamed: ClassVar[Mapping[str, str]] = {"kind": "type"}
    can_grow: ClassVar[bool] = False  # whether sample k is the same for each number of samples

    def check(self, samples: int, columns: int) -> None:
        """Raise a ValueError if the design cannot have this number of samples and columns."""


class Random(Design):
    """Independent random samples.

    Examples
    --------
    >>> from rbchain.study import Random
    >>> Random().points(first=7, last=9, columns=3, seed=0, samples=100).shape
    (2, 3)
    """

    type: Literal["random"] = "random"
    can_grow: ClassVar[bool] = True

    def points(self, first: int, last: int, columns: int, seed: int, samples: int) -> np.ndarray:
        """Return points (last - first, columns) in the open unit cube, of the samples from `first` to before `last`."""
        return uniforms(seed, OF_VALUES, first, last, columns)


class LatinHypercube(Design):
    """Latin hypercube: the range of every random input is divided into equally probable strata, one for each sample.

    Examples
    --------
    >>> from rbchain.study import LatinHypercube
    >>> points = LatinHypercube().points(first=0, last=4, columns=1, seed=0, samples=4)
    >>> sorted((points[:, 0] * 4).astype(int).tolist())
    [0, 1, 2, 3]
    """

    type: Literal["latin_hypercube"] = "latin_hypercube"

    def points(self, first: int, last: int, columns: int, seed: int, samples: int) -> np.ndarray:
        strata = [permuted(np.arange(first, last), samples, seed, column) for column in range(columns)]
        within = uniforms(seed, OF_VALUES, first, last, columns)
        return np.clip((np.stack(strata, -1) + within) / samples, SMALLEST, 1.0 - 2 * SMALLEST)


class Sobol(Design):
    """Sobol sequence, scrambled by SciPy (linear matrix scramble and digital shift). Use 2^m samples for best balance.

    Examples
    --------
    >>> from rbchain.study import Sobol
    >>> Sobol().points(first=0, last=8, columns=2, seed=0, samples=8).shape
    (8, 2)
    """

    type: Literal["sobol"] = "sobol"
    can_grow: ClassVar[bool] = True

    def check(self, samples: int, columns: int) -> None:
        from scipy.stats import qmc

        if columns > qmc.Sobol.MAXDIM or samples > 1 << 30:
            raise ValueError(
                f"samples is {samples} and the study draws {columns} values; a Sobol design has at most {1 << 30} "
                f"samples of {qmc.Sobol.MAXDIM} values. Choose the design 'random' or 'latin_hypercube'"
            )

    def points(self, first: int, last: int, columns: int, seed: int, samples: int) -> np.ndarray:
        from scipy.stats import qmc

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # SciPy recommends 2^m points, which chunks need not have
            sequence = qmc.Sobol(columns, rng=np.random.default_rng(seed))
            if first:  # SciPy does not accept 0
                sequence.fast_forward(first)
            points = sequence.random(last - first)
        return np.clip(points, SMALLEST, 1.0 - 2 * SMALLEST)


class Factorial(Design):
    """Full factorial design: every combination of `levels` values of each random input.

    The values are the medians of `levels` equally probable ranges. For d random inputs, the study must have `levels**d`
    samples.

    Parameters
    ----------
    levels : int
        Values of each random input (3 by default).

    Examples
    --------
    >>> from rbchain.study import Factorial
    >>> Factorial(2).points(first=0, last=4, columns=2, seed=0, samples=4).tolist()
    [[0.25, 0.25], [0.75, 0.25], [0.25, 0.75], [0.75, 0.75]]
    """

    positional: ClassVar[tuple[str, ...]] = ("levels",)
    type: Literal["factorial"] = "factorial"
    levels: Annotated[int, Field(ge=1, le=1_000_000)] = 3

    if TYPE_CHECKING:

        def __init__(self, levels: int = 3) -> None: ...

    def check(self, samples: int, columns: int) -> None:
        if samples != self.levels**columns:
            amount = f" = {self.levels**columns}" if columns * math.log10(self.levels) < 15 else ""
            raise ValueError(
                f"samples is {samples}; expected {self.levels}^{columns}{amount}: all combinations of {self.levels} "
                f"levels of the {columns} values that the study draws"
            )

    def points(self, first: int, last: int, columns: int, seed: int, samples: int) -> np.ndarray:
        digits = np.arange(first, last)[:, None] // self.levels ** np.arange(columns) % self.levels
        return (digits + 0.5) / self.levels


class Table(Design):
    """Values read from a file with one column for each random input, which replace draws from the distributions.

    Parameters
    ----------
    file : str
        CSV, Parquet, npz or npy file, in the folder of the study. Columns are named as in the results, for example
        "link1.mass". An npy file has one column for each random input, in the order of the results.

    Examples
    --------
    >>> from rbchain.study import Table
    >>> Table("design.csv").type
    'table'
    """

    positional: ClassVar[tuple[str, ...]] = ("file",)
    type: Literal["table"] = "table"
    file: str

    if TYPE_CHECKING:

        def __init__(self, file: str) -> None: ...


class SupportsArray(Protocol):
    """An object that NumPy converts to an array, such as a DataFrame."""

    def __array__(self) -> Any: ...


def _table_of_values(value: Any) -> np.ndarray:
    table = np.array(real_array("values", value, ValueError))
    if table.ndim != 2:
        raise ValueError(f"values has shape {table.shape}; expected (samples, columns), a column for each random input")
    table.flags.writeable = False
    return table


class GivenValues(Design):
    """Values from an array with one column for each random input, which replace draws from the distributions.

    `Study(design=array)` is the same as `Study(design=GivenValues(array))`.

    Parameters
    ----------
    values : (m, columns) array, or xarray.DataArray or pandas.DataFrame with the names of the columns
        The values of each sample, in their units (`Study.inputs`), as for `Study.evaluate`. If there are more
        rows than samples, the study uses the first ones.
    columns : sequence of str, optional
        Names of the columns. By default the names in a DataArray or a DataFrame, or the names of `Study.inputs`, in
        their order.

    Examples
    --------
    >>> from rbchain.study import GivenValues
    >>> GivenValues([[0.1, 1.0], [0.2, 1.1], [0.3, 1.2]]).values.shape
    (3, 2)
    """

    internal_names: ClassVar[tuple[str, ...]] = ("without_values",)
    positional: ClassVar[tuple[str, ...]] = ("values",)
    type: Literal["array"] = "array"
    values: Annotated[Any, BeforeValidator(_table_of_values)]
    columns: tuple[str, ...] | None = None

    if TYPE_CHECKING:

        def __init__(
            self, values: SupportsArray | Sequence[Sequence[float]], *, columns: Sequence[str] | None = None
        ) -> None: ...

    @model_validator(mode="before")
    @classmethod
    def _take_names(cls, given: Any) -> Any:
        if not isinstance(given, dict) or given.get("columns") is not None:
            return given
        return given | {"columns": names_of(given.get("values"))}

    def without_values(self) -> Self:
        """Return the design of a plan, whose table contains the values in the order of the random inputs."""
        return self.model_copy(update={"values": None, "columns": None})


def _by_name(value: Any) -> Any:
    """Return the table of a design that is given by its name or by an array."""
    if isinstance(value, str):
        return {"type": value}
    if isinstance(value, Mapping | Design):
        return value
    if isinstance(value, list | tuple) or hasattr(value, "__array__"):
        return {"type": "array", "values": value}
    raise ValueError(f"found {excerpt(value)}; expected the name of a design, a design, or an array (samples, columns)")


#: Designs that need no arguments.
DesignName = Literal["random", "latin_hypercube", "sobol", "factorial"]
AnyDesign = Annotated[
    Annotated[Random | LatinHypercube | Sobol | Factorial | Table | GivenValues, Field(discriminator="type")],
    BeforeValidator(_by_name),
]


def uniforms(seed: int, use: int, first: int, last: int, columns: int) -> np.ndarray:
    """Return uniform numbers (last - first, columns) in the open interval (0, 1), each of 53 bits."""
    counts = -(-columns // WORDS)
    generator = np.random.Philox(key=np.array([seed, use], np.uint64)).advance(first * counts)
    words = generator.random_raw((last - first) * counts * WORDS).reshape(last - first, counts * WORDS)
    return ((words[:, :columns] >> np.uint64(12)) + 0.5) * 2.0**-52


def permuted(k: np.ndarray, n: int, seed: int, column: int) -> np.ndarray:
    """Apply a random permutation of 0 ... n - 1 to the numbers k.

    A Feistel network of six rounds permutes the numbers below the next power of four. It is applied again to results
    of n or more, until they are below n (Black and Rogaway 2002, "Ciphers with arbitrary finite domains").
    """
    half = max(1, -(-int(n - 1).bit_length() // 2))
    mask = np.uint64((1 << half) - 1)
    keys = np.random.Philox(key=np.array([seed, OF_STRATA], np.uint64)).advance(2 * column).random_raw(6)
    numbers = np.array(k, np.uint64)
    outside = np.ones(numbers.shape, bool)
    while outside.any():
        left, right = numbers[outside] >> np.uint64(half), numbers[outside] & mask
        for key in keys:
            left, right = right, left ^ (_mixed(right ^ key) & mask)
        numbers[outside] = left << np.uint64(half) | right
        outside = numbers >= n
    return numbers.astype(np.int64)


def _mixed(x: np.ndarray) -> np.ndarray:
    """The finalizer of SplitMix64 (Steele, Lea and Flood 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
