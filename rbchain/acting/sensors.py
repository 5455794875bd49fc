"""Sensors of sampled controllers: encoders and sensors of velocities. `flatten_sensor` turns them into codes."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from ..common.real_arrays import excerpt
from ..core.lanes.random_numbers import FIRST_SENSOR_CHANNEL
from ..core.tree.layout import TOPOLOGY_COORDINATE
from ..errors import ArgumentError
from .coordinates import dof_index, refuse_quaternion
from .numeric_fields import LARGEST, Declared, NumericField
from .packing import SampleNumbers
from .random_signals import numbers_of_samples

if TYPE_CHECKING:
    from ..facade.model import Model

SAMPLE_IDS = {"samples": "sample_ids"}


#: The noise and the resolution of a sensor, as other packages call them.
NOISE = {
    "std": "noise, the standard deviation",
    "sigma": "noise, the standard deviation",
    "noise_std": "noise, the standard deviation",
    "counts": "resolution, 2 pi divided by the counts per revolution",
    "counts_per_revolution": "resolution, 2 pi divided by the counts per revolution",
    "quantization": "resolution",
    "offset": "bias",
}


@dataclass(frozen=True, eq=False)
class Encoder(Declared):
    """A sensor of the position of a joint, for `Sampled`.

    The measurement is position + bias + noise, rounded to a multiple of the resolution.

    Parameters
    ----------
    joint : str
        Name of the joint, which must not be free or spherical.
    resolution : float or one for each sample, rad or m
        Distance between two values of the measurement; 0 for no rounding. An encoder with N counts per revolution has
        a resolution of 2 pi / N.
    bias : float or one for each sample, rad or m
        Constant error of the measurement.
    noise : float or one for each sample, rad or m
        Standard deviation of white noise, with one normally distributed value for each instant.
    measures_velocity : bool
        Whether the controller computes the velocity as the difference of two measurements, divided by the period. It is
        zero at the first instant. Otherwise the velocity is exact, or a `VelocitySensor` measures it.
    dof : int
        Degree of freedom of the joint, counted from 0. Required if the joint has several.
    seed : int, optional
        Seed of the noise. The default is the seed of the study, or 0 in `Model.simulate`.
    sample_ids : int or one for each sample, optional
        Indices of the samples. By default, the indices in the study, or 0, 1, 2, ... in the order of the batch.
    name : str, optional
        Owner of the parameters in paths, as in "NAME.field"; see `Dispersion`.

    Notes
    -----
    The noise depends only on the seed, the index of the sample, the index of the measured coordinate in (q, qd) and the
    index of the instant. A sample therefore gets the same noise in any batch and with any integration method.
    `Model.lock` and `Model.reroot` change the indices of coordinates, and therefore the noise.

    Examples
    --------
    >>> import rbchain as rb
    >>> encoder = rb.Encoder("link1", resolution=2e-3)
    >>> motor = rb.Sampled(rb.PID("link1", 0.5, kp=0.1, kd=0.01), period=0.01, sensors=[encoder])
    >>> motion = rb.Model.serial_chain(1, gravity=(0, 0, 0)).simulate([[0.0]], duration=5.0, drives=[motor])
    >>> bool(abs(motion.q[0, -1, 0] - 0.5) < 2e-3)
    True
    """

    renamed_arguments: ClassVar = SAMPLE_IDS
    foreign_arguments: ClassVar = NOISE
    numeric_fields: ClassVar = (
        NumericField("resolution", "rad or m", 0.0, LARGEST),
        NumericField("bias", "rad or m", -LARGEST, LARGEST),
        NumericField("noise", "rad or m", 0.0, LARGEST),
    )
    joint: str
    _: KW_ONLY
    resolution: npt.ArrayLike = 0.0
    bias: npt.ArrayLike = 0.0
    noise: npt.ArrayLike = 0.0
    measures_velocity: bool = False
    dof: int | None = None
    seed: int | None = None
    sample_ids: npt.ArrayLike | None = None


@dataclass(frozen=True, eq=False)
class VelocitySensor(Declared):
    """A sensor of the velocity of a joint, for `Sampled`.

    The measurement is velocity + bias + noise, rounded to a multiple of the resolution.

    Parameters
    ----------
    joint : str
        Name of the joint.
    resolution : float or one for each sample, rad/s or m/s
        Distance between two values of the measurement; 0 for no rounding.
    bias, noise : float or one for each sample, rad/s or m/s
        As for `Encoder`.
    dof : int
        Degree of freedom of the joint, counted from 0. Required if the joint has several.
    seed : int, optional
    sample_ids : int or one for each sample, optional
        As for `Encoder`.
    name : str, optional
        Owner of the parameters in paths, as in "NAME.field"; see `Dispersion`.
    """

    renamed_arguments: ClassVar = SAMPLE_IDS
    foreign_arguments: ClassVar = NOISE
    numeric_fields: ClassVar = (
        NumericField("resolution", "rad/s or m/s", 0.0, LARGEST),
        NumericField("bias", "rad/s or m/s", -LARGEST, LARGEST),
        NumericField("noise", "rad/s or m/s", 0.0, LARGEST),
    )
    joint: str
    _: KW_ONLY
    resolution: npt.ArrayLike = 0.0
    bias: npt.ArrayLike = 0.0
    noise: npt.ArrayLike = 0.0
    dof: int | None = None
    seed: int | None = None
    sample_ids: npt.ArrayLike | None = None


Sensor = Encoder | VelocitySensor


def flatten_sensor(model: Model, what: str, sensor: object, numbers: SampleNumbers, measured: set[int]) -> np.ndarray:
    """Return the codes of a sensor, and add the rows of the state that it measures to `measured`."""
    if not isinstance(sensor, (Encoder, VelocitySensor)):
        raise ArgumentError(f"{what}: sensors contains {excerpt(sensor)}; expected Encoder or VelocitySensor objects")
    what = f"{what}: {sensor.label()}"
    i = dof_index(model, what, sensor.joint, sensor.dof)
    row = velocity = model.nq + i
    difference = -1
    if isinstance(sensor, Encoder):
        refuse_quaternion(model, what, i, "use VelocitySensor")
        row = int(model.kernel_model.topology[TOPOLOGY_COORDINATE, i])
        difference = velocity if sensor.measures_velocity else -1
    own = {row} | ({difference} - {-1})
    if own & measured:
        raise ArgumentError(f"{what}: another sensor measures the same quantity; expected one sensor for each")
    measured |= own
    first, *_ = [numbers.add_field(what, sensor, name) for name in ("resolution", "bias", "noise")]
    sample_ids = numbers_of_samples(0 if sensor.sample_ids is None else sensor.sample_ids)
    numbers.add(f"{what}: sample_ids", sample_ids)
    seed = 0 if sensor.seed is None else sensor.seed
    return np.array([row, first, difference, seed, FIRST_SENSOR_CHANNEL + row])
