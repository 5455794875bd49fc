"""Choose the model that controllers use: `PrescribedForce`, `PID` and `ComputedTorque`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..common.real_arrays import excerpt
from ..core.tree import layout
from ..core.tree.layout import Variation
from ..drivers.trajectories import Actions
from ..errors import ArgumentError
from .coordinates import joints_of_dofs
from .drives import NOMINAL, OWN, PID, ComputedTorque, PrescribedForce
from .numeric_fields import Drive
from .sampled import Sampled, controller_of, is_called_for_batch

if TYPE_CHECKING:
    from ..facade.model import Model
    from ..model.kernel_model import KernelModel

# Rows of the topology that must be equal for the models; the others follow from them or are not used.
SAME_TREE = (
    layout.TOPOLOGY_PARENT,
    layout.TOPOLOGY_JOINT,
    layout.TOPOLOGY_POSING,
    layout.TOPOLOGY_COORDINATE,
    layout.TOPOLOGY_BODY,
)


def controllers_model(model: Model, drives: Sequence[Drive], batch: tuple[int, ...]) -> Model:
    """Return the model that all controllers among the drives use; the simulated model if there are none.

    They include compiled functions that need quantities of a model, except for the simulated one, which they can use
    besides. Raises ArgumentError if they use several models, or a model of a different mechanism.
    """
    found: Model | None = None
    for given in drives:
        drive = given.controller if isinstance(given, Sampled) else given
        if isinstance(given, Sampled) and given.needs is not None and not is_called_for_batch(given):
            own = model_of_controller(model, f"needs of {given.label()}", given.needs.model, batch)
            found = _one_model(f"needs of {given.label()}: model", own, found) if own is not model else found
        if not isinstance(drive, (PrescribedForce, PID, ComputedTorque)):
            continue
        what = f"{type(drive).__name__} of joint {drive.joint!r}"
        if not _needs_model(drive):
            if drive.controller_model != NOMINAL:
                raise ArgumentError(
                    f"{what}: it has a model but no gravity_compensation, so the model is not used; set "
                    "gravity_compensation=True, or remove controller_model"
                )
            continue
        own = model_of_controller(model, what, drive.controller_model, batch)
        found = _one_model(f"{what}: its controller_model", own, found)
    return model if found is None else found


def _one_model(what: str, given: Model, found: Model | None) -> Model:
    """Return the model of a drive. Raises an ArgumentError if the drives before it use another one, `found`."""
    if found is not None and given is not found:
        raise ArgumentError(f"{what} is not the model of the other drives; expected the same model for all drives")
    return given


def uses_simulated_model(model: Model, drives: Sequence[Drive]) -> bool:
    """Return whether a controller computes with the parameters of the simulated model, which is "own" or that model.

    The parameters of "nominal" do not depend on the parameters of the simulated model.
    """
    controllers = (controller_of(drive) for drive in drives)
    own = (drive for drive in controllers if isinstance(drive, (PrescribedForce, PID, ComputedTorque)))
    return any(
        _needs_model(drive) and (drive.controller_model is model or drive.controller_model == OWN) for drive in own
    )


def _needs_model(drive: PrescribedForce | PID | ComputedTorque) -> bool:
    return isinstance(drive, ComputedTorque) or bool(drive.gravity_compensation)


def model_of_controller(model: Model, what: str, given: Model | str, batch: tuple[int, ...]) -> Model:
    """Return the model that one drive uses: the nominal model, the simulated model, or another one."""
    if isinstance(given, str):
        given = model if given == OWN else model.nominal
    if given is model:
        return model
    _check_same_tree(model, what, given)
    if given.batch_shape not in ((), batch):
        raise ArgumentError(
            f"{what}: its controller_model has batch shape {given.batch_shape}; expected () or the batch shape of "
            f"the initial states, {batch}"
        )
    if given.in_water and not model.in_water:
        raise ArgumentError(
            f"{what}: its controller_model is in water, the simulated model is not; expected a model without fluid. "
            "Use its replace(fluid_density=0.0)"
        )
    return given


def _check_same_tree(model: Model, what: str, given: Model) -> None:
    """Raise an error for a model with other joints, parents or joint types than the simulated model."""
    own, other = model.kernel_model.topology, given.kernel_model.topology
    if given.joint_names != model.joint_names or own.shape != other.shape:
        raise ArgumentError(
            f"{what}: its model has the joints {excerpt([*given.joint_names])}; expected the joints of the simulated "
            f"model, {excerpt([*model.joint_names])}"
        )
    differs = np.any([own[row] != other[row] for row in SAME_TREE], axis=0)
    if differs.any():
        joint = joints_of_dofs(model, differs)[0]
        raise ArgumentError(
            f"{what}: joint {joint!r} of its model has another type or parent than in the simulated model; expected "
            "the joints of the simulated model"
        )


def controller_arrays(model: Model, controller: Model, dtype: np.dtype) -> tuple[np.ndarray, Variation | None]:
    """Return parameters and variation of the controllers' model, with as many axes as for the simulated model."""
    if controller is model:
        _, parameters, variation = model.kernel_model.arrays(dtype)
        return parameters, variation
    parameters, variation = controller.kernel_model.parameters(dtype, model.in_water)
    return _of_each_sample(parameters, dtype) if model.batch_shape and variation is None else (parameters, variation)


def model_arrays(
    model: KernelModel, actions: Actions | None, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray, Variation | None]:
    """Return topology, parameters and variation of the simulated model, with as many axes as the controllers'."""
    topology, parameters, variation = model.arrays(dtype)
    if actions is None or actions.shared.variation is None or variation is not None:
        return topology, parameters, variation
    return topology, *_of_each_sample(parameters, dtype)


def _of_each_sample(parameters: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, Variation]:
    """Return shared parameters in the form of varied ones, because compiled code needs one type for both models."""
    return parameters[..., None], Variation(np.zeros((0, 2), np.int64), np.zeros((1, 0, 1), dtype))
