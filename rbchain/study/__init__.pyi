"""The public names, each from its module: read by type checkers, and by the package itself, which imports on demand."""

from .accessor import Results
from .description import Assembly, Correlation, Dispersion, ModelSource, Outputs, Simulation, StopWhen
from .designs import Factorial, LatinHypercube, Random, Sobol, Table
from .distributions import (
    Discrete,
    LogNormal,
    MultivariateNormal,
    Normal,
    Scipy,
    Triangular,
    TruncatedNormal,
    Uniform,
)
from .measures import Measure
from .opening import open_dataset
from .study import Study, run_study

__all__ = [
    "Assembly",
    "Correlation",
    "Discrete",
    "Dispersion",
    "Factorial",
    "LatinHypercube",
    "LogNormal",
    "Measure",
    "ModelSource",
    "MultivariateNormal",
    "Normal",
    "Outputs",
    "Random",
    "Results",
    "Scipy",
    "Simulation",
    "Sobol",
    "StopWhen",
    "Study",
    "Table",
    "Triangular",
    "TruncatedNormal",
    "Uniform",
    "open_dataset",
    "run_study",
]
