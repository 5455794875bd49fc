"""Threads that share the samples of a batch: drivers release the global interpreter lock.

The bits of a result do not depend on the number of threads, nor on the thread that computes it.
"""

import os
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import pairwise

# Waking a thread takes as long as the dynamics of about this many degrees of freedom.
DOFS_PER_THREAD = 4096
# The time per sample varies. With several pieces for each thread, a thread that has finished takes another piece.
PIECES_PER_THREAD = 4
# Steps, times degrees of freedom, that take about 50 ms: 1000 times as long as passing them to a worker thread.
MIN_STEPS_FOR_WORKERS = 500_000


def _available_cores():
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _initial_threads():
    """Return RBCHAIN_NUM_THREADS or, if it is not set, the number of cores that this process may use."""
    setting = os.environ.get("RBCHAIN_NUM_THREADS")
    if not setting:
        return _available_cores()
    if not setting.isdecimal() or int(setting) < 1:
        raise ValueError(
            f"environment variable RBCHAIN_NUM_THREADS is {setting!r}; expected a whole number of at least 1"
        )
    return int(setting)


class _Pool:
    """Worker threads, which are started when a call first needs them."""

    def __init__(self):
        self.threads = _initial_threads()
        self.reset()

    def reset(self):
        """Discard the executor: a forked process does not have the threads of its parent."""
        self.executor, self.size = None, 0

    def workers(self, needed):
        """Return an executor with at least `needed` threads."""
        if self.executor is None or self.size < needed:
            self.executor, self.size = ThreadPoolExecutor(needed, thread_name_prefix="rbchain"), needed
        return self.executor


_pool = _Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.reset)


def get_num_threads():
    """Return the number of threads that share a batch.

    The initial value is the environment variable RBCHAIN_NUM_THREADS or, if it is not set, the number of cores that
    this process may use.

    Returns
    -------
    int

    Examples
    --------
    >>> import rbchain as rb
    >>> rb.get_num_threads() >= 1
    True
    """
    return _pool.threads


def set_num_threads(threads):
    """Set the number of threads that share a batch.

    Results do not depend on the number of threads, bit for bit.

    Parameters
    ----------
    threads : int
        At least 1.

    Raises
    ------
    ValueError
        If `threads` is not a whole number of at least 1.

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


def take_memory(spare, new_memory):
    """Take memory from the list `spare`, or allocate new memory.

    No two calls may use the same memory at a time. This needs no lock, because `list.pop` and `list.append` are atomic.
    """
    try:
        return spare.pop()
    except IndexError:
        return new_memory()


def run(driver, spare, new_memory, arguments, samples, width, max_threads=None):
    """Call `driver(memory, *arguments, first, last)` in several threads, for pieces that cover all samples.

    A piece consists of whole blocks of `width` lanes. Memory comes from the list `spare` or from `new_memory()`, and is
    added to `spare` afterwards. `max_threads` limits the number of threads, if the work is too little for all of them.
    """
    blocks = -(-samples // width)
    threads = _pool.threads
    threads = max(1, min(threads, blocks, max_threads or threads))
    pieces = pairwise(_bounds(samples, width, threads))  # one iterator for all threads

    def work():
        memory = None
        for first, last in pieces:
            memory = take_memory(spare, new_memory) if memory is None else memory
            driver(memory, *arguments, first, last)
        if memory is not None:
            spare.append(memory)

    futures = []
    try:
        futures += [_pool.workers(threads - 1).submit(work) for _ in range(threads - 1)]
        work()
        for future in futures:
            future.result()
    except BaseException:  # no thread may write to the results after this function has returned
        for _ in pieces:
            pass
        wait(futures)
        raise


def run_interruptibly(driver, new_memory, arguments, samples, width, interrupt, steps):
    """Call a driver as `run` does, so that Ctrl-C can stop it: the driver stops when `interrupt[0]` is not zero.

    Python handles Ctrl-C in the main thread, and only outside compiled code. Therefore the main thread waits, and
    worker threads compute. For fewer than MIN_STEPS_FOR_WORKERS steps, the main thread computes. `steps` is the number
    of steps times degrees of freedom, or infinity if it is unknown.
    """
    if steps < MIN_STEPS_FOR_WORKERS or threading.current_thread() is not threading.main_thread():
        run(driver, [], new_memory, arguments, samples, width)
        return
    threads = max(1, min(_pool.threads, -(-samples // width)))
    pieces = pairwise(_bounds(samples, width, threads))

    def work():
        memory = new_memory()
        for first, last in pieces:
            if interrupt[0] == 0:
                driver(memory, *arguments, first, last)

    futures = []
    try:
        for _ in range(threads):
            futures.append(_pool.workers(threads).submit(work))
        for future in futures:
            future.result()
    except BaseException:  # Ctrl-C, any exception of a signal handler, or the error of a worker
        interrupt[0] = 1
        wait(futures)
        raise


def _bounds(samples, width, threads):
    """Return the first sample of each piece, and the number of samples: pieces are whole blocks."""
    blocks = -(-samples // width)
    pieces = min(threads * PIECES_PER_THREAD, blocks) if threads > 1 else 1
    return [min(samples, blocks * piece // pieces * width) for piece in range(pieces + 1)]
