"""An attribute that is computed once, without a lock.

`functools.cached_property` of Python 3.11 holds a lock while it computes, shared by all instances. A process that forks
at that moment gives its child a lock that nobody releases.
"""

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property(functools.cached_property):
        """Compute an attribute when it is first read, and keep it in the instance's `__dict__`.

        Threads that read it at the same time may all compute it; all get the value that was kept first.
        """

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            kept = instance.__dict__
            return kept[self.attrname] if self.attrname in kept else kept.setdefault(self.attrname, self.func(instance))


__all__ = ["cached_property"]
