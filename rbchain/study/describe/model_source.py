"""The mechanism of a study: a file or a serial chain, with other values and with motors."""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from ...common.real_arrays import real_array
from ...errors import StudyError
from ...facade.model import Model
from ...io import load
from ...model.joint import Free
from .numbers import Described


class SerialChain(Described):
    """The arguments of `Model.serial_chain`, with the same defaults."""

    n: Annotated[int, Field(ge=1)]
    length: Annotated[float, Field(gt=0.0)] = 0.25
    mass: Annotated[float, Field(gt=0.0)] = 0.1
    gravity: tuple[float, float, float] = (0.0, -10.0, 0.0)


class ElasticMotor(Described):
    """A motor of a joint, as a separate body: the arguments of `Model.with_motor`, with the same defaults."""

    joint: str
    stiffness: float
    damping: float = 0.0
    backlash: float = 0.0
    rotor_inertia: float | None = None
    gear_ratio: float | None = None
    motor_friction: float = 0.0
    motor_damping: float = 0.0


class ModelSource(Described):
    """The mechanism of a study: either a file or a serial chain.

    Parameters
    ----------
    file : str
        URDF, SDF, MJCF (.xml) or TOML file of the mechanism, relative to the folder of the study.
    serial_chain : dict
        Arguments of `Model.serial_chain`: n, length, mass, gravity.
    free_base : bool
        Whether the root link of a URDF file floats. It is fixed to the world by default.
    values : dict
        Values of fields of the model that apply to all samples before a dispersion changes them, as for
        `Model.replace`: one value for all bodies or degrees of freedom, or the whole field.
    motors : list of dict
        Motors that become separate bodies, in this order: arguments of `Model.with_motor`. They are added after
        `values`.

    Examples
    --------
    >>> from rbchain.study import ModelSource
    >>> ModelSource(serial_chain={"n": 2}, values={"damping": 0.1}).build(".").damping.tolist()
    [0.1, 0.1]
    >>> motor = {"joint": "link1", "stiffness": 20.0, "rotor_inertia": 1e-5, "gear_ratio": 50.0}
    >>> ModelSource(serial_chain={"n": 1}, motors=[motor]).build(".").joint_names
    ('link1', 'link1_deflection')
    """

    internal_names: ClassVar[tuple[str, ...]] = ("build",)
    file: Path | None = None
    serial_chain: SerialChain | None = None
    free_base: bool = False
    values: dict[str, Any] = Field(default={})
    motors: tuple[ElasticMotor, ...] = ()

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        if (self.file is None) == (self.serial_chain is None):
            found = "neither file nor serial_chain" if self.file is None else "both file and serial_chain"
            raise ValueError(f'found {found}; expected either file = "arm.urdf" or serial_chain = {{ n = 2 }}')
        if self.free_base and self.file is None:
            raise ValueError("free_base is true, but only a model from a file can have a free base; remove free_base")
        return self

    def build(self, folder: str | Path) -> Model:
        """Return the model. Its file is relative to `folder`."""
        if self.file is None:
            model = Model.serial_chain(**self.serial_chain.model_dump())  # type: ignore[union-attr]
        else:
            path = Path(folder) / self.file
            if not path.is_file():
                raise StudyError(
                    f"file is {str(self.file)!r}, but {path.resolve()} does not exist; expected a path relative to the "
                    "folder of the study"
                )
            model = load(path, base=Free() if self.free_base else None)
        fields = {}
        for name, value in self.values.items():
            numbers = real_array(f"values.{name}", value, StudyError)
            shape = np.shape(getattr(model, name, numbers))
            try:
                fields[name] = np.broadcast_to(numbers, shape)
            except ValueError:
                raise StudyError(
                    f"values.{name} has shape {numbers.shape}; expected one number, or numbers of shape {shape}"
                ) from None
        model = model.replace(**fields)
        for motor in self.motors:
            model = model.with_motor(**motor.model_dump())
        return model
