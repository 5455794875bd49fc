"""Campbell diagrams: natural frequencies and damping ratios against a parameter, drawn by matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..common.calls import explains_calls
from ..common.real_arrays import excerpt, real_array
from ..errors import ArgumentError

if TYPE_CHECKING:
    from ..analysis.modes import Modes
    from .figure import Figure


@explains_calls(is_method=True)
def plot(modes: Modes, parameter: npt.ArrayLike, *, label: str = "parameter", orders: Sequence[float] = ()) -> Figure:
    """Plot the Campbell diagram of a sweep as a matplotlib Figure (extra `plots`): a line for each mode.

    The upper panel shows the frequencies, the lower one the damping ratios. With `modes(..., order="shape")`, each line
    follows one shape. With `order="frequency"`, the lines do not cross.

    Parameters
    ----------
    parameter : (m,) array
        The values of the parameter of the m samples.
    label : str
        Name of the parameter, with its unit.
    orders : sequence of float
        Orders n of an excitation at n times the parameter, such as a speed of rotation. For each one, the upper panel
        has the line n * parameter. The parameter must then be in Hz.

    Returns
    -------
    Figure

    Raises
    ------
    ArgumentError
        If the modes do not belong to a batch with one axis, or the parameter does not have one value for each sample.

    Examples
    --------
    >>> import numpy as np, rbchain as rb
    >>> stiffness = np.linspace(0.1, 1.0, 10)
    >>> arm = rb.Model.serial_chain(2).vary({"link1.stiffness": stiffness})
    >>> figure = arm.modes([-np.pi / 2, 0.0], order="shape").plot(stiffness, label="stiffness (N m/rad)")
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['frequency (Hz)', 'damping ratio']
    """
    from .figure import figure_with_panels

    values, multiples = real_array("parameter", parameter, ArgumentError), real_array("orders", orders, ArgumentError)
    batch = modes.batch_shape
    if len(batch) != 1 or values.shape != batch or not np.isfinite(values).all():
        raise ArgumentError(
            f"parameter is {excerpt(parameter)}, of shape {values.shape}, and the modes have the batch shape {batch}; "
            "expected modes of a batch (m,), and a finite number for each of its samples"
        )
    if multiples.ndim != 1 or not np.isfinite(multiples).all():
        raise ArgumentError(f"orders is {excerpt(orders)}; expected a list of finite numbers, such as [1, 2]")
    figure, panels = figure_with_panels(2, 1, (7.0, 5.6), sharex=True, height_ratios=(2, 1))
    of_frequency, of_damping = panels[:, 0]
    for k in range(modes.frequency.shape[-1]):
        of_frequency.plot(values, modes.frequency[:, k], color=f"C{k}", marker=".", label=f"mode {k}")
        of_damping.plot(values, modes.damping_ratio[:, k], color=f"C{k}", marker=".")
    top = of_frequency.get_ylim()[1]
    for order in multiples:
        of_frequency.plot(values, order * values, "--", color="0.5", linewidth=0.9, label=f"order {order:g}")
    of_frequency.set(ylabel="frequency (Hz)", ylim=(0.0, top))
    of_frequency.legend(frameon=False, fontsize=7)
    of_damping.set(ylabel="damping ratio", xlabel=label)
    return figure
