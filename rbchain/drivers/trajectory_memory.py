"""Memory of the drivers of trajectories: one declaration of its size, and the same for each block of lanes."""

from typing import NamedTuple

import numpy as np

from ..core.contacts.contact_layout import contacts_size
from ..core.contacts.contact_modes import modes_size
from ..core.control.user_calls import FUNCTION_COUNT
from ..core.forces import signal_layout as signal
from ..core.forces.signal_breaks import NODES
from ..core.lanes.lane_memory import CACHE_LINE
from ..core.linear.linear_memory import linearized_rate_memory
from ..core.linear.sampled_sensitivities import sampled_sensitivities_memory
from ..core.loops import constraint_layout as closure
from ..core.methods.adaptive_methods import memory_of_method, rates_of_step
from ..core.motion.event_values import event_rows
from ..core.sample import clock_layout as clocks, tally_layout as tallies
from ..core.sample.records import stepper_size
from ..core.sample.status import NOT_STARTED
from ..core.sample.work_memory import work_memory
from ..core.tree import joint_layout as joint, sampler_layout as sampler, setting_layout as setting
from ..core.tree.sampler_layout import sampler_sizes
from .blocks import memory_size


class TrajectoryMemory(NamedTuple):
    """The memory of one call: the complete state of the samples in the lanes of each block, between two steps.

    All arrays begin with an axis of blocks. `block` (blocks, m) holds the numbers of `block_in`, or (1, m) if the
    blocks share this memory, which keeps nothing between two calls. `stepper` (blocks, m) holds the numbers of a
    Stepper. `clock` (blocks, clocks.ROWS, lanes) and `tally` (blocks, tallies.ROWS, lanes) are its times and counts.
    `actions` holds the memory of `actions_memory`, `work` of a WorkMemory, and `method` of the integration method.
    These three are None if they are not used.
    """

    block: np.ndarray
    stepper: np.ndarray
    clock: np.ndarray
    tally: np.ndarray
    actions: object
    work: object
    method: object


def trajectory_memory(topology, tables, state_size, tableau, actions, lanes, has_work=False, blocks=1):
    """Allocate the TrajectoryMemory of a call for states of `state_size` rows. `has_work` asks for the work of forces.

    `lanes` are the number of lanes and the precision of their numbers.
    One block computes all samples of a call, one after the other. If Python calls functions for the whole batch, all
    samples proceed together, and each block of samples needs separate memory. The blocks of open chains share the
    memory of the dynamics, so that it remains in the processor's cache.
    """
    integrals = 0 if actions is None else actions.integrals
    memory = state_memory(topology, tables, state_size, rates_of_step(tableau), actions, lanes, has_work, blocks)
    of_method = memory_of_method(tableau, topology, tables, integrals, state_size, *lanes, blocks)
    return memory._replace(method=of_method)


def state_memory(topology, tables, state_size, stages, actions, lanes, has_work=False, blocks=1):
    """Allocate a TrajectoryMemory without memory of a method, for `stages` rates of a step."""
    width, dtype = lanes
    rows, constraints = (0, 0) if tables is None else (int(tables.sizes[closure.MEMORY_SIZE]), tables.table.shape[1])
    n, spare, of_actions = topology.shape[1], CACHE_LINE // dtype.itemsize, None
    if actions is not None:
        of_actions = actions_memory(topology, tables, state_size, actions, width, dtype, blocks)
    return TrajectoryMemory(
        block=np.empty(
            (1 if tables is None else blocks, memory_size(topology, rows, width, dtype.itemsize, constraints)), dtype
        ),
        stepper=np.empty((blocks, stepper_size(state_size, stages) * width + spare), dtype),
        clock=np.zeros((blocks, clocks.ROWS, width)),
        tally=np.full((blocks, tallies.ROWS, width), NOT_STARTED),
        actions=of_actions,
        work=work_memory(n, state_size, width, dtype, blocks) if has_work else None,
        method=None,
    )


def actions_memory(topology, tables, state_size, actions, width, dtype, blocks):
    """Allocate the memory that `lay_out_actions` divides among the fields of BlockActions.

    Returns, in this order: numbers in lanes, values of event functions and differences of signals, arguments of a user
    function, integers, arguments of failed calls. Then follow the memory of the modes of contacts, of sensitivities and
    of sampled controllers; each is None if it is not used.
    """
    n, numbers, signals = topology.shape[1], actions.shared.numbers.shape[1], actions.shared.signals.shape[1]
    rows = numbers + 1 + signals * (3 + signal.PIECE_COEFFICIENTS + actions.max_coefficients) + joint.ROWS * n
    controller = actions.controller.shape[0] * actions.controller.shape[1]
    contacts = 0 if actions.shared.contacts is None else contacts_size(actions.shared.contacts, n)
    results, samplers = 2 * n * n if actions.settings[setting.DERIVATIVES] != 0 else n, actions.shared.samplers
    if samplers is not None:
        results = max(results, int(samplers.sizes[sampler.SIZE_STATES : sampler.SIZE_NEEDED + 1].sum()))
    size = (rows + controller + 6 * (n + 1) + contacts) * width + CACHE_LINE // dtype.itemsize
    modes, of_sensitivities, of_samplers = None, None, None
    if actions.modes is not None:
        modes = np.zeros((blocks, modes_size(int(actions.modes[0])) * width), dtype)
    if actions.sensitivities is not None:
        results = max(results, n * int(actions.shared.functions[FUNCTION_COUNT].max(initial=0)))
        rows_of_state = 2 * n + actions.integrals
        columns = actions.sensitivities.columns.shape[1]
        of_sensitivities = (
            *linearized_rate_memory(n, tables, actions.integrals, rows_of_state, width, dtype, blocks),
            sampled_sensitivities_memory(samplers, columns, n, width, dtype, blocks),
        )
    if samplers is not None:
        of_numbers, of_times, of_counts = sampler_sizes(samplers, n, state_size, width)
        of_samplers = (
            np.zeros((blocks, of_numbers), dtype),
            np.zeros((blocks, of_times)),
            np.zeros((blocks, of_counts), np.int64),
        )
    return (
        np.zeros((blocks, size), dtype),
        np.zeros((blocks, event_rows(actions.shared.events.shape[1]) + len(NODES), width)),
        np.zeros((blocks, state_size + numbers + results + 1)),
        np.zeros((blocks, (2 + signal.WINDOW_ROWS * signals) * width + setting.COUNT), np.int64),
        np.zeros((blocks, actions.records.failed_calls.shape[1], width)),
        modes,
        of_sensitivities,
        of_samplers,
    )
