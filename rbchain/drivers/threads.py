"""Share a batch among threads. A driver holds no lock, and no bit of a state depends on the thread that computes it."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import pairwise

# Waking another thread costs as much as this many joints do.
JOINTS_PER_THREAD = 4096
PIECES_PER_THREAD = 4
# Steps of single degrees of freedom that take some 50 ms, a thousand times as long as to hand them to a worker.
BRIEF = 500_000


def _available_cores():
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _threads_at_first():
    """RBCHAIN_NUM_THREADS, or the cores this process may use."""
    setting = os.environ.get("RBCHAIN_NUM_THREADS")
    if not setting:
        return _available_cores()
    if not setting.isdecimal() or int(setting) < 1:
        raise ValueError(f"RBCHAIN_NUM_THREADS is {setting!r}; expected a whole number of at least 1")
    return int(setting)


class _Pool:
    """The worker threads beside the caller's own, made when first needed."""

    def __init__(self):
        self.threads = _threads_at_first()
        self.forget()

    def forget(self):
        """After a fork the child has none of its parent's threads."""
        self.executor, self.made_for = None, 0

    def workers(self, needed):
        """An executor of at least as many threads."""
        if self.executor is None or self.made_for < needed:
            self.executor, self.made_for = ThreadPoolExecutor(needed, thread_name_prefix="rbchain"), needed
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


def run(driver, spare, new_memory, arguments, samples, width, most_threads=None):
    """Call `driver(memory, *arguments, first, last)` for pieces that together make up all `samples`.

    Pieces are whole blocks of `width` lanes. Memory comes from the list `spare`, or is new, and is spare thereafter.
    `most_threads` bounds the threads where the work is too little for all.
    """
    blocks = -(-samples // width)
    threads = _pool.threads
    threads = max(1, min(threads, blocks, most_threads or threads))
    spans = pairwise(_bounds(samples, width, threads))  # shared: whoever is free takes the next

    def work():
        memory = None
        for first, last in spans:
            memory = borrow(spare, new_memory) if memory is None else memory
            driver(memory, *arguments, first, last)
        if memory is not None:
            spare.append(memory)

    helpers = []
    try:
        helpers += [_pool.workers(threads - 1).submit(work) for _ in range(threads - 1)]
        work()
        for helper in helpers:
            helper.result()
    except BaseException:  # nobody writes to the results any more once the caller has them back
        for _ in spans:
            pass
        wait(helpers)
        raise


def run_interruptibly(driver, new_memory, arguments, samples, width, interrupt, steps):
    """`run` for drivers that take long, and that stop once `interrupt[0]` is not zero.

    Python handles Ctrl-C in the main thread, and only while that thread is not in compiled code: so the main thread
    waits while the workers compute. It does not wait for less than `BRIEF` steps of single degrees of freedom; `steps`
    is their number, or infinite where it is not known.
    """
    if steps < BRIEF or threading.current_thread() is not threading.main_thread():
        run(driver, [], new_memory, arguments, samples, width)
        return
    threads = max(1, min(_pool.threads, -(-samples // width)))
    spans = pairwise(_bounds(samples, width, threads))

    def work():
        memory = new_memory()
        for first, last in spans:
            if interrupt[0] == 0:
                driver(memory, *arguments, first, last)

    workers = []
    try:
        for _ in range(threads):
            workers.append(_pool.workers(threads).submit(work))
        for worker in workers:
            worker.result()
    except BaseException:  # Ctrl-C, whatever a handler of signals raises, or the error of a worker
        interrupt[0] = 1
        wait(workers)
        raise


def _bounds(samples, width, threads):
    """Where the pieces of a batch begin and end, in whole blocks."""
    blocks = -(-samples // width)
    pieces = min(threads * PIECES_PER_THREAD, blocks) if threads > 1 else 1
    return [min(samples, blocks * piece // pieces * width) for piece in range(pieces + 1)]
