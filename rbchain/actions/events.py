"""Events of a motion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..misspelt import SuggestsAttributes


@dataclass(frozen=True, eq=False)
class Event(SuggestsAttributes):
    """A joint passes a value, or a function of the state changes its sign.

    Parameters
    ----------
    joint : str
        Name of the joint; or else
    function : function(t, q, qd, parameters, out)
        Writes the number to `out[0]`, as in `UserForces`.
    value : float or one for each sample
        What the joint passes.
    quantity : "position" or "velocity"
        Of the joint.
    direction : int
        1 counts if it rises, -1 if it falls, 0 either way.
    stop : bool
        Whether the sample's motion ends there.
    parameters : (m,) or (..., m) array
        Numbers for the function.
    dof : int
        Which degree of freedom of the joint.
    max_records : int
        rbchain records the first `max_records` occurrences and counts the rest.

    Notes
    -----
    Events are located in the method's continuous extension, to 1e-11 s. If an event occurs twice within one step, both
    may be missed.

    Examples
    --------
    >>> import rbchain as rb
    >>> rod = rb.Model.serial_chain(1, gravity=(0, 0, 0))
    >>> motion = rod.simulate([[0.0]], [[2.0]], 1.0, method="rk4", step=0.03, events=[rb.Event("link1", value=1.0)])
    >>> float(motion.events[0].t[0, 0].round(9)), motion.message
    (0.5, '1 of 1: An event ended the simulation.')
    """

    joint: str | None = None
    function: Callable[..., Any] | None = None
    value: npt.ArrayLike = 0.0
    quantity: str = "position"
    direction: int = 0
    stop: bool = True
    parameters: npt.ArrayLike = ()
    dof: int = 0
    max_records: int = 16


@dataclass(frozen=True, eq=False)
class EventRecord(SuggestsAttributes):
    """When an event happened.

    Attributes
    ----------
    count : (...) array of int
        How often.
    t : (..., max_records) array, s
        When; NaN where it did not.
    q, qd : (..., max_records, nq), (..., max_records, nv) arrays
        The states there.
    """

    count: np.ndarray
    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
