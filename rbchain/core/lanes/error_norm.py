"""The norm of the error of a step: Hairer, Norsett and Wanner (1993), section II.4."""

import math

from ...compiling.jit import kernel
from .lanes import constant_like, zeros_like


@kernel
def norm(x, y, y_new, atol, rtol, k):
    """Compute the root mean square of x / (atol + rtol max(|y|, |y_new|)): at most 1 for an acceptable error x.

    x, y and y_new are (rows, lanes), `atol` and `rtol` numbers. The norm is a number without a unit.
    """
    total = zeros_like(y[0, k])
    for j in range(y.shape[0]):
        ratio = x[j, k] / (constant_like(y, atol) + constant_like(y, rtol) * max(abs(y[j, k]), abs(y_new[j, k])))
        total = total + ratio * ratio
    return math.sqrt(total / constant_like(y, y.shape[0]))
