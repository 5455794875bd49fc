"""Let Ctrl-C wait while other libraries work: some of them replace its exception by an error of their own."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType


@contextlib.contextmanager
def interrupts_wait() -> Iterator[Callable[[], None]]:
    """Delay the effect of Ctrl-C to the next call of the function that this yields, or to the end of the block.

    Only the main thread receives Ctrl-C; in other threads the block runs as it is. A handler of SIGINT that the user
    installed is called instead of raising KeyboardInterrupt.

    Matplotlib turns a KeyboardInterrupt during a conversion of arrays into "ValueError: Invalid bounding box", and an
    ffmpeg that the same Ctrl-C ended into a CalledProcessError. Either error becomes the context of KeyboardInterrupt.
    """
    previous = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(previous):
        yield lambda: None
        return
    handler = previous
    waiting: list[tuple[int, FrameType | None]] = []

    def take_effect() -> None:
        if waiting:
            handler(*waiting[-1])
            waiting.clear()  # not if the handler raises: an error on the way out must not hide its exception

    signal.signal(signal.SIGINT, lambda *arguments: waiting.append(arguments))
    try:
        yield take_effect
    finally:
        signal.signal(signal.SIGINT, handler)
        take_effect()
