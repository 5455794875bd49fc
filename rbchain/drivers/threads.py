"""A batch shared out among threads: drivers hold no lock while they run, and no bit depends on who ran a chain."""

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

# Below this many joints in a call, waking another thread costs more than it saves.
WORTH_A_THREAD = 4096
PIECES_PER_THREAD = 4


def _available_cores():
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Pool:
    """The worker threads, made when first needed."""

    def __init__(self):
        self.threads = int(os.environ.get("RBCHAIN_NUM_THREADS") or _available_cores())
        self.executor = None

    def forget(self):
        """After a fork the child has none of its parent's threads."""
        self.executor = None

    def workers(self):
        if self.executor is None:
            self.executor = ThreadPoolExecutor(max_workers=self.threads, thread_name_prefix="rbchain")
        return self.executor


_pool = _Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.forget)


def get_num_threads():
    """How many threads a batch is shared among: at first RBCHAIN_NUM_THREADS, or the cores this process may use."""
    return _pool.threads


def set_num_threads(threads):
    """Share batches among this many threads from now on.

    Examples
    --------
    >>> import rbchain as rb
    >>> before = rb.get_num_threads()
    >>> rb.set_num_threads(1)
    >>> rb.get_num_threads()
    1
    >>> rb.set_num_threads(before)
    """
    if threads != int(threads) or threads < 1:
        raise ValueError(f"threads is {threads!r}; expected a whole number of at least 1")
    _pool.threads, _pool.executor = int(threads), None


def run(driver, new_memory, arguments, chains, joints, width):
    """Call `driver(new_memory(), *arguments, first, last)` for pieces that make up all `chains`, `joints` in all.

    The first call of a driver compiles it, alone; pieces are whole blocks of `width` lanes.
    """
    blocks = -(-chains // width)
    pieces = min(_pool.threads * PIECES_PER_THREAD, blocks)
    if _pool.threads == 1 or joints < WORTH_A_THREAD or pieces == 1:
        driver(new_memory(), *arguments, 0, chains)
        return
    bounds = [min(chains, blocks * piece // pieces * width) for piece in range(pieces + 1)]
    workers = _pool.workers()
    calls = [workers.submit(lambda span: driver(new_memory(), *arguments, *span), span) for span in pairwise(bounds)]
    for call in calls:
        call.result()
