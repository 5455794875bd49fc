"""Records of lane memory: the arrays have the declared shapes, and share no number."""

import numpy as np
import pytest

from rbchain.core.contacts.contact_modes import ContactModes, modes_in, modes_size
from rbchain.core.linear.linearized_rate import LinearizedRate, carve_linearized_rate, linearized_rate_size
from rbchain.core.loops.constraint_layout import (
    ConstraintDerivatives,
    constraint_derivatives_in,
    constraint_derivatives_size,
)
from rbchain.core.sample.records import Stepper, carve_stepper, stepper_size

WIDTH, FIRST = 4, 3
RECORDS = {
    ContactModes: (modes_size, modes_in, (5,), 0),
    ConstraintDerivatives: (constraint_derivatives_size, constraint_derivatives_in, (6, 4, 2), 0),
    LinearizedRate: (linearized_rate_size, carve_linearized_rate, (3, 4, 2), 2),
    Stepper: (stepper_size, carve_stepper, (7, 3), 4),
}


@pytest.mark.plain_python
@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_the_arrays_of_a_record_fill_its_memory_without_overlap(record):
    size, carve, sizes, given = RECORDS[record]
    count = size(*sizes)
    memory = np.zeros(FIRST + count * WIDTH + 2)
    arrays = [array for array in carve(memory, FIRST, WIDTH, *[None] * given, *sizes) if array is not None]
    for array in arrays:
        assert array.shape[-1] == WIDTH
        array[...] += 1.0
    assert sum(array.size for array in arrays) == count * WIDTH
    np.testing.assert_array_equal(memory[FIRST : FIRST + count * WIDTH], 1.0)
    assert not memory[:FIRST].any() and not memory[-2:].any()


@pytest.mark.plain_python
def test_the_declaration_states_the_shapes():
    _, carve, sizes, given = RECORDS[LinearizedRate]
    n, nq, integrals = sizes
    linear = carve(np.zeros(10_000), 0, WIDTH, *[None] * given, *sizes)
    assert linear.derivatives.shape == (3, n, n, WIDTH)
    assert linear.by_integral.shape == (n, integrals, WIDTH)
    assert linear.rates.shape == (2, nq + n + integrals, WIDTH)
