"""The public names, each from its module: read by type checkers, and by the package itself, which imports on demand."""

from .describe.correlations import Correlation
from .describe.description import Assembly, Outputs, Simulation, StopWhen
from .describe.designs import Factorial, LatinHypercube, Random, Sobol, Table
from .describe.dispersions import Dispersion
from .describe.distributions import (
    Discrete,
    LogNormal,
    MultivariateNormal,
    Normal,
    Triangular,
    TruncatedNormal,
    Uniform,
)
from .describe.measures import Measure
from .describe.model_source import ModelSource
from .describe.scipy_distributions import Scipy
from .show.accessor import Results
from .show.datasets import open_dataset
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
