"""A `cached_property` without a lock.

In Python 3.11, `functools.cached_property` holds a lock, shared by all instances, while it computes the value. If the
process forks at that moment, the child inherits a lock that is never released.
"""

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property(functools.cached_property):
        """Compute an attribute when it is first read, and store it in the instance's `__dict__`.

        Threads that read it at the same time may each compute it; all of them get the value that was stored first.
        """

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            kept = instance.__dict__
            return kept[self.attrname] if self.attrname in kept else kept.setdefault(self.attrname, self.func(instance))


__all__ = ["cached_property"]
