"""Events: zero crossings of a joint or a user function, which are recorded and may stop a sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..common.misspelt import SuggestsAttributes


@dataclass(frozen=True, eq=False)
class Event(SuggestsAttributes):
    """A time at which a joint passes a value, or a function of the state changes its sign.

    Give either `joint` or `function`.

    Parameters
    ----------
    joint : str
        Name of the joint.
    function : function(t, q, qd, parameters, out)
        Writes the number whose sign is observed to `out[0]`. The arguments are as for `UserForces`.
    value : float or one for each sample, rad or m (rad/s or m/s)
        Value that the joint passes.
    quantity : "position" or "velocity"
        Quantity of the joint to observe.
    direction : int
        1: only rising values; -1: only falling values; 0: both.
    stop : bool
        Whether the event ends the simulation of the sample.
    parameters : (m,) or (..., m) array
        Numbers for the function, the same for all samples or different for each.
    dof : int
        Degree of freedom of the joint, counted from 0.
    max_records : int
        rbchain records the first `max_records` occurrences and counts the rest.

    Notes
    -----
    rbchain locates events on the interpolant of the step, to 1e-11 s. A joint may pass the value several times within
    one step. A function is called at both ends of each step and at three places between them, and at further places
    where it comes close to zero. Changes of its sign may be missed if it changes its sign twice within a quarter of a
    step, and has no extreme beside one of these places.

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
    """The occurrences of one event.

    Attributes
    ----------
    count : (...) array of int
        Number of occurrences, including those that are not recorded.
    t : (..., max_records) array, s
        Times of the recorded occurrences; NaN for unused entries.
    q, qd : (..., max_records, nq), (..., max_records, nv) arrays
        States at these times.
    """

    count: np.ndarray
    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
