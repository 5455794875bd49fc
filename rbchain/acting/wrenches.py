"""Wrenches on bodies over time, and the current of the water. `flatten_wrenches` turns them into arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import SupportsIndex

import numpy as np
import numpy.typing as npt

from ..common.misspelt import SuggestsAttributes
from ..common.real_arrays import real_array
from ..errors import StateError
from .between_bodies import Bushing, SpringDamper
from .contacts import DryFriction, HardStops, SphereContact, SphereSphereContact
from .signals import Signal, ThreeSignals, three_signals


@dataclass(frozen=True, eq=False)
class Wrench(SuggestsAttributes):
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
        Axes of force and moment: those of the world, or those of the body, which rotate with it.

    Examples
    --------
    A force along a hinged rod does not accelerate it; a force across it does:

    >>> import rbchain as rb
    >>> rod = rb.Model.serial_chain(1, length=0.5, gravity=(0, 0, 0))
    >>> along, across = (rb.Wrench("link1", force, point=(0.5, 0, 0), axes="body") for force in ((1, 0, 0), (0, 1, 0)))
    >>> settings = {"method": "rk4", "step": 0.01}
    >>> motions = [rod.simulate([[0.0]], [[0.0]], 0.1, forces=[f], **settings) for f in (along, across)]
    >>> [float(motion.qd[0, -1, 0].round(6)) for motion in motions]
    [0.0, 6.0]
    """

    frame: str
    force: ThreeSignals = (0.0, 0.0, 0.0)
    moment: ThreeSignals = (0.0, 0.0, 0.0)
    point: npt.ArrayLike = (0.0, 0.0, 0.0)
    axes: str = "world"

    def of_sample(self, i: SupportsIndex | tuple[SupportsIndex, ...], batch_shape: tuple[int, ...]) -> Wrench:
        """Return the wrench on one sample of a batch."""
        force, moment = (_signals_of_sample(given, i, batch_shape) for given in (self.force, self.moment))
        point = real_array("point", self.point, StateError)
        return Wrench(self.frame, force, moment, np.broadcast_to(point, (*batch_shape, 3))[i], self.axes)


@dataclass(frozen=True, eq=False)
class Current(SuggestsAttributes):
    """The velocity of the water over time, which is the same everywhere.

    Parameters
    ----------
    velocity : three Signals or numbers, or (..., 3) array, m/s
        In world axes. The acceleration of the water also causes forces on immersed bodies, so the signal should not
        jump.
    """

    velocity: ThreeSignals

    def of_sample(self, i: SupportsIndex | tuple[SupportsIndex, ...], batch_shape: tuple[int, ...]) -> Current:
        """Return the current of one sample of a batch."""
        return Current(_signals_of_sample(self.velocity, i, batch_shape))


Force = Wrench | Current | SpringDamper | Bushing | DryFriction | HardStops | SphereContact | SphereSphereContact


def _signals_of_sample(
    components: ThreeSignals, i: SupportsIndex | tuple[SupportsIndex, ...], batch_shape: tuple[int, ...]
) -> tuple[Signal, ...]:
    return tuple(signal.of_sample(i, batch_shape) for signal in three_signals("components", components))
