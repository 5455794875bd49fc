"""Linear analysis: linear models, modes, equilibria and periodic motions of a batch of mechanisms."""

from typing import TYPE_CHECKING, Any

from ..common.misspelled import no_attribute

if TYPE_CHECKING:
    from .periodic_motions import periodic as periodic

__all__ = ["periodic"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name == "periodic":  # imported on demand, because a model imports other modules of this package
            from .periodic_motions import periodic

            return periodic
        raise no_attribute(f"module {__name__!r}", name, __all__)


def __dir__() -> list[str]:
    return __all__
