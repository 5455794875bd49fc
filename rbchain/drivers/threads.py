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
        self.executor, self.made_for = None, 0

    def forget(self):
        """After a fork the child has none of its parent's threads."""
        self.executor = None

    def workers(self):
        if self.executor is None or self.made_for != self.threads:
            self.executor = ThreadPoolExecutor(max_workers=self.threads - 1, thread_name_prefix="rbchain")
            self.made_for = self.threads
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
    _pool.threads = int(threads)


def borrow(spare, new_memory):
    """Memory for one call at a time: a spare piece, or a new one. No lock is needed: pop and append are atomic."""
    try:
        return spare.pop()
    except IndexError:
        return new_memory()


def run(driver, spare, new_memory, arguments, chains, joints, width):
    """Call `driver(memory, *arguments, first, last)` for pieces that make up all `chains`, `joints` numbers in all.

    Pieces are whole blocks of `width` lanes. Memory comes from the list `spare`, or is new, and is spare thereafter.
    """
    blocks = -(-chains // width)
    pieces = min(_pool.threads * PIECES_PER_THREAD, blocks)
    if _pool.threads == 1 or joints < WORTH_A_THREAD or pieces == 1:
        memory = borrow(spare, new_memory)
        driver(memory, *arguments, 0, chains)
        spare.append(memory)
        return
    bounds = [min(chains, blocks * piece // pieces * width) for piece in range(pieces + 1)]
    spans = pairwise(bounds)  # shared: whoever is free takes the next

    def work():
        memory = borrow(spare, new_memory)
        for first, last in spans:
            driver(memory, *arguments, first, last)
        spare.append(memory)

    helpers = [_pool.workers().submit(work) for _ in range(_pool.threads - 1)]
    work()
    for helper in helpers:
        helper.result()
