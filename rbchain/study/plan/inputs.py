"""The random inputs of a study for its user, with their units and distributions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...common.real_arrays import FloatArray, whole_number
from ...errors import StudyError
from ...model.named_items import NamedItems
from ..describe.designs import Random
from ..describe.distribution import Distribution
from .columns import Columns


@dataclass(frozen=True)
class Input:
    """A random input of a study.

    Attributes
    ----------
    unit : str
        SI unit; "1" for factors and coefficients, and empty if none is known.
    distribution : Distribution
        Its distribution, in this unit.
    """

    unit: str
    distribution: Distribution


class Inputs(NamedItems[Input]):
    """The random inputs of a study by name, in their order, as `Study.inputs` returns them.

    Attributes
    ----------
    names : tuple of str
    units : dict of str
        The unit of each input, by name.

    Examples
    --------
    >>> import rbchain as rb
    >>> study = rb.Study(
    ...     rb.Model.serial_chain(1), samples=10, simulate=rb.Simulation(1.0),
    ...     vary={"*.q": rb.Uniform("-20 deg", "20 deg"), "*.damping": rb.Normal(0.1, 0.01)},
    ... )
    >>> study.inputs.names, study.inputs.units["link1.q"], study.inputs["link1.damping"].distribution.std
    (('link1.q', 'link1.damping'), 'rad', 0.01)
    >>> study.inputs.sample(3).shape
    (3, 2)
    """

    _owner, _singular, _plural = "the study", "input", "inputs"

    def __init__(self, columns: Columns, seed: int) -> None:
        self._columns, self._seed = columns, seed
        self._by_name = {column.name: Input(column.unit, column.distribution) for column in columns.columns}
        self._names = tuple(self._by_name)

    def __repr__(self) -> str:
        return f"Inputs({self.units})"

    @property
    def names(self) -> tuple[str, ...]:
        return self._names

    def _item(self, name: str) -> Input:
        return self._by_name[name]

    @property
    def units(self) -> dict[str, str]:
        return {name: given.unit for name, given in self._by_name.items()}

    def sample(self, n: int, *, seed: int | None = None) -> FloatArray:
        """Draw independent samples of all inputs from their distributions and correlations.

        Parameters
        ----------
        n : int
            Number of samples.
        seed : int, optional
            Seed of the random numbers; the seed of the study by default. With this seed, the first rows are the draws
            of a study with the design "random".

        Returns
        -------
        (n, columns) array
            For `Study.evaluate`, with a column for each name, in its unit.
        """
        n = whole_number("n", n, StudyError, least=1)
        seed = self._seed if seed is None else whole_number("seed", seed, StudyError, least=0, most=(1 << 63) - 1)
        if not self._by_name:
            return np.zeros((n, 0))
        return self._columns.values(Random().points(0, n, len(self._by_name), seed, n))
