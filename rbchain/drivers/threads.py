"""Threads that share the samples of a batch: drivers release the global interpreter lock.

The bits of a result do not depend on the number of threads, nor on the thread that computes it.
"""

import _thread
import os
import threading
from itertools import pairwise
from queue import SimpleQueue

from ..common.process_options import change, current
from ..common.real_arrays import whole_number

# Waking a thread takes as long as the dynamics of about this many degrees of freedom.
DOFS_PER_THREAD = 4096
# The time per sample varies. With several pieces for each thread, a thread that has finished takes another piece.
PIECES_PER_THREAD = 4
# Steps, times degrees of freedom, that take about 50 ms: 1000 times as long as passing them to a worker thread.
MIN_STEPS_FOR_WORKERS = 500_000


class _Pool:
    """Worker threads, which are started when a call first needs them.

    Ctrl-C can interrupt the main thread at any instruction. The locks of `threading` and `concurrent.futures` are
    written in Python. They stay locked if they are interrupted at a certain instruction, and other threads then wait
    without end. A SimpleQueue is written in C and has no such instruction. So queues and lists connect the threads.
    """

    def __init__(self):
        self.reset()

    def reset(self):
        """Forget the worker threads: a forked process does not have the threads of its parent."""
        self.calls, self.size = SimpleQueue(), 0

    def begin(self, calls, count):
        """Begin `count` of the `calls`, each in a worker thread."""
        while self.size < count:
            _thread.start_new_thread(_serve, (self.calls,))  # Thread.start uses such locks
            self.size += 1
        for _ in range(count):
            self.calls.put(calls)


def _serve(queue):
    """Make the calls in a queue, in a worker thread."""
    while True:
        queue.get().make_one()


class _Calls:
    """Runs a function in worker threads. The waiting thread raises their errors."""

    def __init__(self, function):
        self.function, self.is_stopped = function, False
        self.begun, self.ended, self.errors = [], [], SimpleQueue()

    def make_one(self):
        """Make one call, in a worker thread."""
        self.begun.append(None)  # before `is_stopped` is read, so that `stop` waits for this call
        error = None
        try:
            if not self.is_stopped:
                self.function()
        except BaseException as raised:
            error = raised
        self.ended.append(None)
        self.errors.put(error)

    def wait(self, count):
        """Wait for the end of `count` calls, and raise the first error."""
        for _ in range(count):
            error = self.errors.get()
            if error is not None:
                raise error

    def stop(self):
        """Wait for the calls that have begun, and skip the others."""
        self.is_stopped = True
        while len(self.ended) < len(self.begun):
            self.errors.get()


_pool = _Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.reset)


def get_num_threads():
    """Return the number of threads that share a batch, `rb.options().threads`.

    Returns
    -------
    int

    Examples
    --------
    >>> import rbchain as rb
    >>> rb.get_num_threads() >= 1
    True
    """
    return current().threads


def set_num_threads(threads):
    """Set the number of threads that share a batch, as `rb.options(threads=threads)` does.

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
    change(threads=whole_number("threads", threads, ValueError, least=1))


def take_memory(spare, new_memory):
    """Take memory from the list `spare`, or allocate new memory.

    No two calls may use the same memory at a time. This needs no lock, because `list.pop` and `list.append` are atomic.
    """
    try:
        return spare.pop()
    except IndexError:
        return new_memory()


def call_in_new_thread(function):
    """Call a function in a thread, so that Ctrl-C does not interrupt it, and wait for its end."""
    calls = _Calls(function)
    try:
        _thread.start_new_thread(calls.make_one, ())
        calls.wait(1)
    except BaseException:
        calls.stop()
        raise


def run(driver, spare, new_memory, arguments, samples, width, max_threads=None):
    """Call `driver(memory, *arguments, first, last)` in several threads, for pieces that cover all samples.

    A piece consists of whole blocks of `width` lanes. Memory comes from the list `spare` or from `new_memory()`, and is
    added to `spare` afterwards. `max_threads` limits the number of threads, if the work is too little for all of them.
    """
    blocks = -(-samples // width)
    threads = get_num_threads()
    threads = max(1, min(threads, blocks, max_threads or threads))
    if threads == 1:
        memory = take_memory(spare, new_memory)
        driver(memory, *arguments, 0, samples)
        spare.append(memory)
        return
    pieces = pairwise(_bounds(samples, width, threads))  # one iterator for all threads

    def work():
        memory = None
        for first, last in pieces:
            memory = take_memory(spare, new_memory) if memory is None else memory
            driver(memory, *arguments, first, last)
        if memory is not None:
            spare.append(memory)

    calls = _Calls(work)
    try:
        _pool.begin(calls, threads - 1)
        work()
        calls.wait(threads - 1)
    except BaseException:  # no thread may write to the results after this function has returned
        for _ in pieces:
            pass
        calls.stop()
        raise


def run_interruptibly(driver, new_memory, arguments, samples, width, interrupt, steps, spare=None):
    """Call a driver as `run` does, so that Ctrl-C can stop it: the driver stops when `interrupt[0]` is not zero.

    Python handles Ctrl-C in the main thread, and only outside compiled code. Therefore the main thread waits, and
    worker threads compute. For fewer than MIN_STEPS_FOR_WORKERS steps, the main thread computes. `steps` is the number
    of steps times degrees of freedom, or infinity if it is unknown. The list `spare` is as for `run`.
    """
    if steps < MIN_STEPS_FOR_WORKERS or threading.current_thread() is not threading.main_thread():
        run(driver, [] if spare is None else spare, new_memory, arguments, samples, width)
        return
    threads = max(1, min(get_num_threads(), -(-samples // width)))
    pieces = pairwise(_bounds(samples, width, threads))

    def work():
        memory = new_memory()
        for first, last in pieces:
            if interrupt[0] == 0:
                driver(memory, *arguments, first, last)

    calls = _Calls(work)
    try:
        _pool.begin(calls, threads)
        calls.wait(threads)
    except BaseException:  # Ctrl-C, any exception of a signal handler, or the error of a worker
        interrupt[0] = 1
        calls.stop()
        raise


def _bounds(samples, width, threads):
    """Return the first sample of each piece, and the number of samples: pieces are whole blocks."""
    blocks = -(-samples // width)
    pieces = min(threads * PIECES_PER_THREAD, blocks) if threads > 1 else 1
    return [min(samples, blocks * piece // pieces * width) for piece in range(pieces + 1)]
