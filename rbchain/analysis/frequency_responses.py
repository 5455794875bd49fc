"""`Model.frequency_response`: the response of a mechanism to joint forces that oscillate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy.typing as npt

from ..acting.numeric_fields import Drive, Force
from ..common.calls import explains_calls
from .input_ports import GivenInput
from .linear_models import linearize
from .ports import Output
from .transfer_functions import FrequencyResponse, checked_frequencies

if TYPE_CHECKING:
    from ..facade.model import Model


@explains_calls(is_method=True, contacts="forces", frequencies="frequency")
def frequency_response(
    model: Model,
    frequency: npt.ArrayLike,
    q: npt.ArrayLike | None = None,
    qd: npt.ArrayLike = 0.0,
    *,
    tau: npt.ArrayLike = 0.0,
    inputs: Sequence[GivenInput] | None = None,
    outputs: Sequence[Output] | None = None,
    drives: Sequence[Drive] | None = None,
    forces: Sequence[Force] = (),
    t: npt.ArrayLike = 0.0,
    integrals: npt.ArrayLike = 0.0,
) -> FrequencyResponse:
    """Compute the response of small motions about an equilibrium to joint forces that oscillate.

    This is H(i w) = C (i w - A)^-1 B + D with the matrices of `linearize`. `LinearModel.frequency_response` computes it
    from a linear model.

    Parameters
    ----------
    model : Model
    frequency : (f,) array, Hz
        Finite frequencies from 0, in any order.
    q, qd : (..., nq) and (..., nv) arrays, rad or m, and rad/s or m/s
        Equilibrium of each sample, or a state of a steady motion. q defaults to the neutral positions.
    tau, inputs, outputs, drives, forces, t, integrals
        As for `linearize`.

    Returns
    -------
    FrequencyResponse

    Raises
    ------
    ArgumentError, ModelError
        As for `linearize`, and if a frequency is negative or not finite, or above half the frequency with which
        `Sampled` controllers sample.

    Notes
    -----
    The response is NaN at a frequency whose relative distance from an undamped natural frequency is below about 1e-12,
    because round-off would change it by more than about 1e-4. The limit is the smallest condition number of
    all scalings of the equations (Bauer, 1963, "Optimally scaled matrices").

    The response describes a steady oscillation only if the mechanism is stable (`modes`).

    Examples
    --------
    A hanging rod with the natural frequency sqrt(10) rad/s, which a joint force moves without damping:

    >>> import numpy as np, rbchain as rb
    >>> rod = rb.Model.serial_chain(1, length=1.5, mass=2.0, gravity=(0, -10, 0))
    >>> w = np.array([0.0, 1.0, 10**0.5, 10.0])
    >>> found = rod.frequency_response(w / (2 * np.pi), [-np.pi / 2], outputs=[("position", "link1")])
    >>> found.gain[:, 0, 0].round(6).tolist()
    [0.066667, 0.074074, nan, 0.007407]
    >>> abs(found.phase[:, 0, 0]).round(6).tolist()
    [0.0, 0.0, nan, 3.141593]
    """
    checked_frequencies(frequency)
    linear = linearize(
        model,
        q,
        qd,
        tau=tau,
        inputs=inputs,
        outputs=outputs,
        drives=drives,
        forces=forces,
        t=t,
        integrals=integrals,
    )
    return linear.frequency_response(frequency)
