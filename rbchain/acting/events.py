"""Events: zero crossings of a joint or a user function, which are recorded and may stop a sample.

`flatten_event` turns them into codes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from ..common.misspelled import SuggestsAttributes
from ..common.pickles import PickledByName
from ..common.real_arrays import FloatArray, excerpt
from ..core.motion import event_values as event_codes
from ..core.tree.layout import TOPOLOGY_COORDINATE
from ..errors import ArgumentError
from .coordinates import dof_index, refuse_quaternion
from .numeric_fields import Declared, NumericField
from .packing import SampleNumbers
from .user_code import UserCall, name_of, user_function

if TYPE_CHECKING:
    from ..facade.model import Model


@dataclass(frozen=True, eq=False)
class Event(Declared):
    """An event: a joint reaches or passes a value, or a function of the state passes zero.

    Give either `joint` or `function`.

    Parameters
    ----------
    joint : str
        Name of the joint.
    function : function(t, q, qd, parameters, out)
        Writes the value whose sign is observed to `out[0]`. The arguments are as for `UserForces`.
    value : float or one for each sample, rad or m (rad/s or m/s)
        Value that the joint passes.
    quantity : "position" or "velocity"
        Quantity of the joint to observe.
    direction : int
        1: only rising values; -1: only falling values; 0: both.
    stop : bool
        Whether the event ends the simulation of the sample; False by default.
    parameters : (m,) or (..., m) array
        Values for the function, the same for all samples or different for each.
    dof : int
        Degree of freedom of the joint, counted from 0. Required if the joint has several.
    max_records : int
        rbchain records the first `max_records` occurrences and counts the rest.
    name : str, optional
        Owner of the parameters in paths, as in "NAME.field"; see `Dispersion`.

    Notes
    -----
    An event occurs when a joint reaches `value` or passes it, but not when it leaves it, so a sample that starts at
    `value` has no event before it returns. A joint that turns back at `value` has one event, in the direction in which
    it arrives. If it turns back so close to `value` that the error of the method decides, there may be no event, one or
    two.

    Distances from `value` within round-off are treated as zero: 8 units of round-off of the largest position or
    velocity so far, or 128 units within a step of "rosenbrock". With `DryFriction`, `HardStops` or contacts in methods
    with adaptive steps, larger distances are treated as zero at changes between sliding, sticking, open and closed
    contact, and until the joint moves farther away. They are 1e-10 m or rad, or 1e-14 of the positions if that is
    larger, plus the distance that the joint moves in 2e-12 s.

    The same rules apply to the zeros of a function. However, small values of a function are not treated as zero, so
    round-off, or an error at a contact, can cause an event.

    rbchain locates events on the interpolant of the step, to 1e-11 s. A joint may pass the value several times within
    one step. A function is called at both ends of each step and at three places between them, and at further places
    where it comes close to zero. If it changes its sign twice within a quarter of a step and has no extremum next to
    one of these places, both changes may be missed.

    Examples
    --------
    >>> import rbchain as rb
    >>> rod = rb.Model.serial_chain(1, gravity=(0, 0, 0))
    >>> passes = rb.Event("link1", value=1.0, stop=True)
    >>> motion = rod.simulate([[0.0]], [[2.0]], 1.0, method="rk4", step=0.03, events=[passes])
    >>> float(motion.events[0].t[0, 0].round(9)), motion.message
    (0.5, '1 of 1: An event ended the simulation.')
    """

    renamed_arguments: ClassVar = {"most": "max_records", "of": "quantity", "terminal": "stop"}
    numeric_fields: ClassVar = (
        NumericField("value", "rad or m"),
        NumericField("parameters", "", shape=(None,)),
    )
    joint: str | None = None
    function: Callable[..., Any] | None = None
    _: KW_ONLY
    value: npt.ArrayLike = 0.0
    quantity: Literal["position", "velocity"] = "position"
    direction: int = 0
    stop: bool = False
    parameters: npt.ArrayLike = ()
    dof: int | None = None
    max_records: int = 16

    def __post_init__(self) -> None:
        what = self.label()
        if self.joint is not None and self.function is not None and not callable(self.function):
            raise ArgumentError(
                f"{what}: function is {excerpt(self.function)}; expected a function, without a joint. Give the value "
                f"that the joint passes by keyword: value={excerpt(self.function)}"
            )
        if (self.joint is None) == (self.function is None):
            raise ArgumentError(
                f"{what}: joint is {excerpt(self.joint)} and function is {excerpt(self.function)}; use one of the two"
            )
        if isinstance(self.direction, (int, np.integer)) and self.direction not in (-1, 0, 1):
            raise ArgumentError(
                f"{what}: direction is {self.direction!r}; expected 1 (rising), -1 (falling) or 0 (both directions)"
            )
        super().__post_init__()
        if self.function is not None:
            self._refuse_fields_of_joints()
        elif np.size(self.parameters):
            raise ArgumentError(
                f"{what}: parameters is {excerpt(self.parameters)}, but only a function has parameters; remove them"
            )

    def _refuse_fields_of_joints(self) -> None:
        """Raise an error for fields of an event with a function that only the event of a joint has."""
        for name in ("value", "quantity", "dof"):
            given, unused = getattr(self, name), getattr(Event, name)
            if np.any(np.asarray(given) != unused):
                raise ArgumentError(
                    f"{self.label()} has {name} = {excerpt(given)}, but only the event of a joint has a {name}; remove "
                    f"{name}. The event occurs where the function writes 0"
                )

    def label(self) -> str:
        """Return the joint or the function of the event, for messages."""
        if self.joint is None and self.function is not None:
            return f"Event with function {name_of(self.function)}"
        return super().label()


@dataclass(frozen=True, eq=False)
class EventRecord(PickledByName, SuggestsAttributes):
    """The occurrences of one event.

    Attributes
    ----------
    count : (...) array of int
        Number of occurrences, including those that are not recorded.
    t : (..., max_records) array, s
        Times of the recorded occurrences; NaN for unused entries.
    q, qd : (..., max_records, nq), (..., max_records, nv) arrays
        States at these times.
    derivatives_of_t : dict
        Derivatives of the times, {name: (..., max_records, ...) array}, for the names in the argument `derivatives` of
        `simulate`. The last axes are the axes of the parameter, as in `Trajectory.derivatives`.
    derivatives_of_state : dict
        Derivatives of the states at the events, {name: (..., max_records, 2 nv, ...) array}, with the rows of
        `Trajectory.derivatives`. They include the effect of the change of the event time.

    Notes
    -----
    The derivatives are NaN for an event whose value turns back within 100 times the tolerance of its level, because
    the errors of the motion then determine when it occurs. A user function is differentiated by central differences of
    eighth order with steps between 2^-4 and 2^-23 (s, rad, m, rad/s, m/s, or times the velocity if it is larger). The
    derivatives are NaN if their errors exceed 1e-6 of the largest slope of the function.

    Examples
    --------
    A mass falls 5 m in 1 s under 10 m/s^2. The time is sqrt(2 h / g), so a higher start delays it by 0.1 s/m:

    >>> import rbchain as rb
    >>> builder = rb.ModelBuilder(gravity=(0, 0, -10))
    >>> builder.add_body("mass", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia(mass=1.0))
    >>> ground = rb.Event("mass", value=0.0, stop=True, max_records=1)
    >>> motion = builder.build().simulate([5.0], [0.0], 2.0, events=[ground], derivatives=["q"])
    >>> record = motion.events[0]
    >>> record.t.round(6).tolist(), record.derivatives_of_t["q"].round(6).tolist()
    ([1.0], [[0.1]])
    >>> record.derivatives_of_state["q"].round(6).tolist()  # of the position, which is 0, and of the velocity
    [[[0.0], [-1.0]]]
    """

    foreign_attributes: ClassVar[dict[str, str]] = {
        "time": "t",
        "times": "t",
        "t_events": "t",
        "derivatives": "derivatives_of_state",
    }
    count: np.ndarray
    t: FloatArray
    q: FloatArray
    qd: FloatArray
    derivatives_of_t: dict[str, FloatArray] = field(default_factory=dict)
    derivatives_of_state: dict[str, FloatArray] = field(default_factory=dict)

    def of_samples(self, samples: Any) -> EventRecord:
        """Return the occurrences in the samples of an index."""
        return EventRecord(
            *(x[samples] for x in (self.count, self.t, self.q, self.qd)),
            *({k: x[samples] for k, x in of.items()} for of in (self.derivatives_of_t, self.derivatives_of_state)),
        )


def flatten_event(model: Model, event: Event, numbers: SampleNumbers) -> tuple[np.ndarray, UserCall | None]:
    """Add the numbers of an event, and return its codes (EVENT_ROWS,) and its user function, if it has one."""
    if not isinstance(event, Event):
        raise ArgumentError(f"events contains {excerpt(event)}; expected objects of Event")
    codes, what = np.zeros(event_codes.EVENT_ROWS, np.int64), event.label()
    codes[event_codes.EVENT_DIRECTION], codes[event_codes.EVENT_TERMINAL] = event.direction, bool(event.stop)
    if event.function is not None:
        codes[event_codes.EVENT_ROW] = -1
        first, count = numbers.add_row(f"{what}: parameters", event.parameters)
        codes[event_codes.EVENT_NUMBERS], codes[event_codes.EVENT_NUMBER_COUNT] = first, count
        function = user_function("Event", event.function, (model.nq, model.nv, count), (1,))
        codes[event_codes.EVENT_ADDRESS] = function.address
        return codes, UserCall(what, function, first, count)
    i = dof_index(model, what, event.joint, event.dof)
    if event.quantity == "velocity":
        row = model.nq + i
    else:
        refuse_quaternion(model, what, i, 'use quantity="velocity", or a function of the state')
        row = int(model.kernel_model.topology[TOPOLOGY_COORDINATE, i])
    codes[event_codes.EVENT_ROW], codes[event_codes.EVENT_NUMBERS] = row, numbers.add(f"{what}: value", event.value)
    return codes, None
