"""Options of this process: threads, progress, checks of array bounds, and errors of derivatives."""

from __future__ import annotations

from typing import Any

from ..common.calls import ExplainsCalls
from ..common.process_options import change, current
from ..common.real_arrays import true_or_false, whole_number
from ..errors import ArgumentError


class options(ExplainsCalls):
    """Set options of this process, permanently or until the end of a `with` block.

    Parameters
    ----------
    threads : int, optional
        Number of threads that share a batch, at least 1. The initial value is RBCHAIN_NUM_THREADS or, if that is not
        set, the number of cores that the process may use. Results do not depend on it, bit for bit.
    progress : bool, optional
        Whether long work shows its progress. RBCHAIN_QUIET=1 turns it off, too.
    boundscheck : bool, optional
        Whether user functions are compiled with checks of array bounds, for debugging. A function that reads or writes
        beyond the end of an array then raises an IndexError. Functions that it calls are not checked.

    control_derivative_errors : bool, optional
        Whether the steps of "rk45" and "dop853" also satisfy the tolerances for the derivatives of `Model.simulate`,
        which is the default. Otherwise, the derivatives do not change the steps.

    Attributes
    ----------
    threads, progress, boundscheck, control_derivative_errors
        The values of this process. `rb.options()` changes none of them.

    Raises
    ------
    ArgumentError
        If a value is not allowed.

    Examples
    --------
    >>> import rbchain as rb
    >>> with rb.options(threads=1, progress=False):
    ...     print(rb.options().threads, rb.options().progress)
    1 False
    >>> rb.options().progress
    True
    """

    def __init__(
        self,
        *,
        threads: int | None = None,
        progress: bool | None = None,
        boundscheck: bool | None = None,
        control_derivative_errors: bool | None = None,
    ) -> None:
        self._before = current()
        changed: dict[str, Any] = {}
        if threads is not None:
            changed["threads"] = whole_number("threads", threads, ArgumentError, least=1)
        flags = {
            "progress": progress,
            "boundscheck": boundscheck,
            "control_derivative_errors": control_derivative_errors,
        }
        for name, value in flags.items():
            if value is not None:
                changed[name] = true_or_false(name, value, ArgumentError)
        self._changed = changed.keys()
        change(**changed)

    threads = property(lambda self: current().threads)
    progress = property(lambda self: current().progress)
    boundscheck = property(lambda self: current().boundscheck)
    control_derivative_errors = property(lambda self: current().control_derivative_errors)

    def __enter__(self) -> options:
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the options that this object has changed."""
        change(**{name: getattr(self._before, name) for name in self._changed})

    def __repr__(self) -> str:
        return f"options({', '.join(f'{name}={value}' for name, value in vars(current()).items())})"
