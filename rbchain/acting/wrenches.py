"""Wrenches on bodies over time, and the current of the water. `flatten_wrenches` turns them into arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from ..common.real_arrays import excerpt
from ..core.forces import wrenches
from ..drivers import between_bodies as drivers
from ..errors import ArgumentError
from .between_bodies import BETWEEN_BODIES, is_between_bodies
from .contacts import CONTACTS, NAMES_OF_CONTACTS
from .flatten_between_bodies import compute_between_bodies, states_of_sample
from .numeric_fields import LARGEST, SIGNAL, Drive, Force, NumericField
from .packing import SampleNumbers, SignalTables
from .signals import ThreeSignals, three_signals

if TYPE_CHECKING:
    from ..facade.model import Model


@dataclass(frozen=True, eq=False)
class Wrench(Force):
    """A force and a moment on a body, over time.

    Parameters
    ----------
    frame : str
        Name of a body, or of a frame on fixed joints.
    force, moment : three Signals or numbers, or (..., 3) array, N and N m
        Components along `axes`.
    point : (3,) or (..., 3) array, m
        Point of application of the force, in the axes of `frame`, from its origin.
    axes : "world" or "body"
        Axes of force and moment: the axes of the world, or the axes of the body, which rotate with it.
    name : str, optional
        Owner of the parameters in paths, as in "NAME.field"; see `Dispersion`.

    Examples
    --------
    A force along a hinged rod does not accelerate it; a force across it does:

    >>> import rbchain as rb
    >>> rod = rb.Model.serial_chain(1, length=0.5, gravity=(0, 0, 0))
    >>> tip = {"point": (0.5, 0, 0), "axes": "body"}
    >>> along, across = (rb.Wrench("link1", force=force, **tip) for force in ((1, 0, 0), (0, 1, 0)))
    >>> settings = {"method": "rk4", "step": 0.01}
    >>> motions = [rod.simulate([[0.0]], duration=0.1, forces=[f], **settings) for f in (along, across)]
    >>> [float(motion.qd[0, -1, 0].round(6)) for motion in motions]
    [0.0, 6.0]
    """

    renamed_arguments: ClassVar = {"body": "frame"}
    foreign_arguments: ClassVar = {"torque": "moment", "position": "point", "link": "frame"}
    numeric_fields: ClassVar = (
        NumericField("force", "N", shape=(3,), kind=SIGNAL),
        NumericField("moment", "N m", shape=(3,), kind=SIGNAL),
        NumericField("point", "m", -LARGEST, LARGEST, (3,)),
    )
    frame: str
    _: KW_ONLY
    force: ThreeSignals = (0.0, 0.0, 0.0)
    moment: ThreeSignals = (0.0, 0.0, 0.0)
    point: npt.ArrayLike = (0.0, 0.0, 0.0)
    axes: Literal["world", "body"] = "world"


@dataclass(frozen=True, eq=False)
class Current(Force):
    """A velocity of the water over time, uniform in space. The velocities of several currents add up.

    Parameters
    ----------
    velocity : three Signals or numbers, or (..., 3) array, m/s
        In world axes. The acceleration of the water also causes forces on immersed bodies, so the signal should not
        jump.
    name : str, optional
        Owner of the parameters in paths, as in "NAME.field"; see `Dispersion`.
    """

    numeric_fields: ClassVar = (NumericField("velocity", "m/s", shape=(3,), kind=SIGNAL),)
    velocity: ThreeSignals


#: The classes of forces.
FORCES = (Wrench, Current, *BETWEEN_BODIES, *CONTACTS)


def flatten_wrenches(
    model: Model, forces: Sequence[Force], signals: SignalTables, numbers: SampleNumbers
) -> np.ndarray:
    """Add the signals and points of the wrenches to the arrays, and return their codes (WRENCH_ROWS, wrenches)."""
    others = (Current, *BETWEEN_BODIES, *CONTACTS)
    codes = [_flat_wrench(model, force, signals, numbers) for force in forces if not isinstance(force, others)]
    return np.array(codes, np.int64).reshape(-1, wrenches.WRENCH_ROWS).T.copy()


def flatten_current(model: Model, forces: Sequence[Force], signals: SignalTables) -> int:
    """Add the three signals of the sum of all currents, and return the number of the first; -1 without a current."""
    currents = [force for force in forces if isinstance(force, Current)]
    if not currents:
        return -1
    if not model.in_water:
        raise ArgumentError(
            "forces contains a Current, but no body is in water; expected a model with a fluid_density above 0, and "
            "bodies with an Immersion"
        )
    components = zip(*(three_signals("Current: velocity", current.velocity) for current in currents), strict=True)
    first, *_ = [signals.add("Current: velocity", reduce(add, component), derivatives=1) for component in components]
    return first


def _flat_wrench(
    model: Model, wrench: Force, signals: SignalTables, numbers: SampleNumbers
) -> tuple[int, int, int, int]:
    if not isinstance(wrench, Wrench):
        if isinstance(wrench, Drive):
            raise ArgumentError(f"forces contains a {type(wrench).__name__}. Pass drives as drives=[...]")
        raise ArgumentError(
            f"forces contains {excerpt(wrench)}; expected objects of Wrench, SpringDamper, Bushing, Current, "
            f"{NAMES_OF_CONTACTS}"
        )
    what = wrench.label()
    frame = model.kernel_model.frame(wrench.frame)
    if frame.body < 0:
        raise ArgumentError(
            f"{what}: this frame is fixed to the world; expected a moving body, or a frame fixed to one"
        )
    pose = frame.pose
    if wrench.axes == "body" and np.abs(pose.rotation - np.eye(3)).max() > 0.0:
        body = model.body_names[frame.body]
        raise ArgumentError(
            f'{what}: axes is "body", but this frame is rotated relative to its body {body!r}; use axes="world", or '
            f"frame={body!r}"
        )
    components = [
        (f"{what}: {name}", signal)
        for name, given in (("force", wrench.force), ("moment", wrench.moment))
        for signal in three_signals(f"{what}: {name}", given)
    ]
    first, *_ = [signals.add(name, signal, derivatives=0) for name, signal in components]
    point = wrench.numeric_field("point").checked(what, wrench.point)
    at, _ = numbers.add_row(f"{what}: point", point @ pose.rotation.T + pose.translation)
    axes = wrenches.WRENCH_BODY_AXES if wrench.axes == "body" else wrenches.WRENCH_WORLD_AXES
    return int(model.kernel_model.dofs.last[frame.body]), axes, first, at


def wrenches_on_bodies(
    model: Model, forces: Sequence[Force], q: np.ndarray, qd: np.ndarray, t: np.ndarray
) -> np.ndarray:
    """Compute the wrenches on bodies at positions q (..., times, nq), velocities qd and times t (times,).

    Returns
    -------
    (..., times, n, 6) array, N and N m
        Force, then moment about the origin of the body's frame, in world axes, as methods of `Model` take them.
    """
    model = model[..., None]
    found = np.zeros((*q.shape[:-1], model.n_bodies, 6))
    origins = model.body_poses(q).translation
    for wrench in forces:
        if not isinstance(wrench, Wrench):
            continue
        i, pose = model.kernel_model.frame(wrench.frame).body, model.frame_poses(q, wrench.frame)
        wrench_at = [
            np.stack([np.broadcast_to(signal(t), q.shape[:-1]) for signal in three_signals(name, given)], -1)
            for name, given in (("force", wrench.force), ("moment", wrench.moment))
        ]
        if wrench.axes == "body":
            wrench_at = [np.einsum("...ij,...j->...i", pose.rotation, x) for x in wrench_at]
        point = np.asarray(wrench.point, np.float64)
        point = point[..., None, :] if point.ndim > 1 else point  # one for each sample, the same at all times
        arm = np.einsum("...ij,...j->...i", pose.rotation, point) + pose.translation - origins[..., i, :]
        found[..., i, :3] += wrench_at[0]
        found[..., i, 3:] += wrench_at[1] + np.cross(arm, wrench_at[0])
    if any(is_between_bodies(force) for force in forces):
        driver, shape, repeats = drivers.wrenches_between_bodies, (model.n_bodies, 6), states_of_sample(model, q)
        found += compute_between_bodies(model, forces, q.shape[:-2], driver, shape, (q, qd), repeats=repeats)
    return found
