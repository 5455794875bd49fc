"""LU factorization of small dense matrices in lanes, with row pivoting in each lane.

Source: Golub and Van Loan (2013), *Matrix Computations*, algorithms 3.4.1 and 3.1.3. A pivot on the diagonal is kept
unless another entry of its column is PIVOT_RATIO times larger, because the lanes exchange rows one after the other.
"""

from ...compiling.jit import kernel, routine
from ..lanes.lanes import any_lane, constant_like

PIVOT_RATIO = 10.0


@routine
def factorize(A, pivots, k):
    """Replace A (n, n, lanes) by its factors L and U, with the reciprocals of the pivots on the diagonal.

    Row c was exchanged with row pivots[c], (n, lanes). If A is singular, solutions are not finite.
    """
    n, one, zero = A.shape[0], constant_like(A, 1.0), constant_like(A, 0.0)
    for c in range(n):
        for lane in range(A.shape[2]):
            pivots[c, lane] = c
        largest = abs(A[c, c, k])
        for row in range(c + 1, n):
            largest = max(largest, abs(A[row, c, k]))
        if any_lane(largest > constant_like(A, PIVOT_RATIO) * abs(A[c, c, k])):
            for lane in range(A.shape[2]):
                exchange_rows(A, pivots, c, lane)
        inverse = one / A[c, c, k]
        A[c, c, k] = inverse
        for row in range(c + 1, n):
            factor = A[row, c, k]
            if any_lane(factor != zero):
                factor = factor * inverse
                A[row, c, k] = factor
                for j in range(c + 1, n):
                    A[row, j, k] = A[row, j, k] - factor * A[c, j, k]


@kernel
def exchange_rows(A, pivots, c, lane):
    """Exchange row c with the row below it that has the largest entry in column c, if this entry is much larger.

    A is (n, n, lanes), and `pivots` (n, lanes).
    """
    largest, pivot = constant_like(A, PIVOT_RATIO) * abs(A[c, c, lane]), c
    for row in range(c + 1, A.shape[0]):
        if abs(A[row, c, lane]) > largest:
            largest, pivot = abs(A[row, c, lane]), row
    pivots[c, lane] = pivot
    if pivot != c:
        for j in range(A.shape[0]):
            A[c, j, lane], A[pivot, j, lane] = A[pivot, j, lane], A[c, j, lane]


@routine
def solve(A, pivots, x, k):
    """Replace the right-hand side x (n, lanes) by the solution, with the A and pivots of `factorize`.

    A is (n, n, lanes), and `pivots` (n, lanes).
    """
    n = A.shape[0]
    for c in range(n):
        for lane in range(A.shape[2]):
            pivot = pivots[c, lane]
            if pivot != c:
                x[c, lane], x[pivot, lane] = x[pivot, lane], x[c, lane]
    for i in range(n):
        total = x[i, k]
        for j in range(i):
            total = total - A[i, j, k] * x[j, k]
        x[i, k] = total
    for i in range(n - 1, -1, -1):
        total = x[i, k]
        for j in range(i + 1, n):
            total = total - A[i, j, k] * x[j, k]
        x[i, k] = total * A[i, i, k]
