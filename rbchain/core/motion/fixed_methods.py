"""The methods with fixed steps: the functions of each, chosen at compile time by the type of its settings."""

from collections.abc import Callable
from typing import NamedTuple

from ...compiling.jit import choose_among
from ..methods.settings import ContactStepSettings, FixedStepSettings
from .fixed_steps import accept_fixed_step, end_fixed_step, move_to_end, save_starts, take_fixed_step
from .moreau import end_moreau_step, start_with_contacts, take_moreau_step


class FixedStepFunctions(NamedTuple):
    """The functions of a method with fixed steps.

    settings : type
        Type of its settings.
    start_motion(block, stepper, settings, batch, samples, k)
        Saves the initial states, and ends the samples that cannot start.
    take_step(block, stepper, settings, batch, t, h, restarts, k)
        Computes the end of a step from t to t + h. `restarts` states whether the rate there is computed again anyway.
    inspect_step(block, stepper, settings, batch, is_saved_time, lane)
        Checks the step of a lane for failures and events, counts it, and saves its end if that is a saved time.
    accept_step(block, stepper, settings, k)
        Moves all lanes to the end of the step.
    """

    settings: type
    start_motion: Callable
    take_step: Callable
    inspect_step: Callable
    accept_step: Callable


METHODS = (
    FixedStepFunctions(FixedStepSettings, save_starts, take_fixed_step, end_fixed_step, accept_fixed_step),
    FixedStepFunctions(ContactStepSettings, start_with_contacts, take_moreau_step, end_moreau_step, move_to_end),
)


def _of_method(name):
    """Return the function `name` of the method whose settings are the third argument."""

    def number(block, stepper, settings, *_):
        kind = getattr(settings, "instance_class", type(settings))
        return next(number for number, method in enumerate(METHODS) if method.settings is kind)

    return choose_among(number, tuple(getattr(method, name) for method in METHODS))


start_motion = _of_method("start_motion")
take_step = _of_method("take_step")
inspect_step = _of_method("inspect_step")
accept_step = _of_method("accept_step")
