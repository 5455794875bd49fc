"""Simulate samples whose random inputs the caller gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from ..plan.given_inputs import given_inputs
from .settings_of_run import settings_of_run

if TYPE_CHECKING:
    import xarray

    from ..study import Study


def evaluate(study: Study, inputs: npt.ArrayLike | xarray.DataArray, **settings: Any) -> xarray.Dataset:
    """Simulate samples with given inputs in place of random ones, for optimizers and other programs.

    Parameters
    ----------
    inputs : (m, n) array, or xarray.DataArray or pandas.DataFrame with the names of the inputs
        The values of `Study.inputs` for each sample, in their units. Columns with names can be in any order.
    **settings
        As for `Study.run`, without `out`.

    Returns
    -------
    xarray.Dataset
        As from `Study.run`. Sample k has the noise of sample k of the study.

    Raises
    ------
    StudyError
        If the inputs have another shape or other names, or as for `Study.run`.

    Examples
    --------
    The largest kinetic energy of a rod that falls from three angles q is m g l (1 + sin(q)) / 2 = (1 + sin(q)) / 2:

    >>> import numpy as np, rbchain as rb
    >>> study = rb.Study(
    ...     rb.Model.serial_chain(1, length=1.0), samples=10, simulate=rb.Simulation(1.0),
    ...     vary={"*.q": rb.Uniform(-1.5, 1.5)},
    ...     measures=[rb.Measure("energy", "kinetic_energy", over="max")],
    ... )
    >>> study.evaluate([[-0.5], [-1.0]]).energy.values.round(5).tolist()
    [0.26029, 0.07926]
    """
    values = given_inputs(inputs, study.plan)
    run_settings = settings_of_run(study.run, "Study.evaluate", settings)
    return study.of_plan(study.plan.with_values(values)).run(**run_settings)
