"""The same numbers in other memory layouts and types, and values that are not real arrays."""

from decimal import Decimal
from fractions import Fraction

import numpy as np


def strided(x):
    """Every other number of a wider array; the numbers between would change any result."""
    wide = np.full((*x.shape[:-1], 2 * x.shape[-1]), 77, x.dtype)
    wide[..., ::2] = x
    return wide[..., ::2]


def unaligned(x):
    """An array at an odd address."""
    memory = np.zeros(x.nbytes + 1, np.uint8)
    found = memory[1:].view(x.dtype).reshape(x.shape)
    found[...] = x
    return found


def read_only(x):
    found = x.copy()
    found.flags.writeable = False
    return found


def in_records(x):
    """A field of an array of records."""
    records = np.zeros(x.shape, [("before", np.int8), ("number", x.dtype)])
    records["number"] = x
    return records["number"]


class Readable:
    """An object that NumPy reads by its protocol."""

    def __init__(self, x):
        self.x = x

    def __array__(self, dtype=None, copy=None):
        return self.x.astype(self.x.dtype if dtype is None else dtype)


def mapped(number):
    """A function that makes nested tuples of an array's numbers, of which infinite ones stay as they are."""

    def convert(x):
        if np.ndim(x):
            return tuple(convert(row) for row in x)
        return number(float(x)) if np.isfinite(x) else float(x)

    return convert


#: None of them changes a number; lists, and what becomes a list, need at least one.
LAYOUTS = {
    "contiguous": np.copy,
    "columns first": np.asfortranarray,
    "batch last": lambda x: np.moveaxis(np.moveaxis(x, 0, -1).copy(), -1, 0),
    "backwards": lambda x: x[..., ::-1].copy()[..., ::-1],
    "upside down": lambda x: x[::-1].copy()[::-1],
    "strided": strided,
    "unaligned": unaligned,
    "read-only": read_only,
    "swapped bytes": lambda x: x.astype(x.dtype.newbyteorder()),
    "in records": in_records,
    "readable object": Readable,
    "nested lists": lambda x: x.tolist(),
    "tuples of fractions": mapped(Fraction),
    "tuples of decimals": mapped(Decimal),
    "objects": lambda x: x.astype(object),
}
#: Types that hold small whole numbers exactly; floats of 16 bits and more hold halves too.
TYPES = ("float64", "float32", "float16", "longdouble", "int8", "int32", "int64", "uint8", "uint64")


def not_real_arrays(x):
    """Values that must be refused in place of the array x, by what is wrong with them."""
    endless: list = []
    endless.append(endless)
    whole = np.where(np.isfinite(x), x, 1.0)
    holes = np.zeros(x.shape, bool)
    holes.flat[:1] = True
    return {
        "masked": np.ma.array(x, mask=holes),
        "masked, with no hole": np.ma.array(x, mask=False),
        "masked row in a list": [np.ma.array(x, mask=holes)] if x.ndim == 1 else [np.ma.array(row) for row in x],
        "complex": x + 1j,
        "complex without an imaginary part": x + 0j,
        "text": x.astype(str),
        "bytes": x.astype("S"),
        "true and false": x > 0,
        "dates": whole.astype("datetime64[s]"),
        "durations": whole.astype("timedelta64[s]"),
        "records": np.zeros(x.shape, [("a", float), ("b", float)]),
        "nothing": None,
        "a list within itself": endless,
        "a dictionary": {"q": x},
        "a set": {1.0, 2.0},
        "a generator": (value for value in x.tolist()),
        "a function": np.sin,
        "ragged lists": [[0.0], [0.0, 1.0]],
        "too large an integer": [10**400] * x.shape[-1],
        "an integer of too many digits": [10**5000] * x.shape[-1],
        "one number": 1.0,
        "one number too many": np.zeros((*x.shape[:-1], x.shape[-1] + 1)),
        "no numbers": np.zeros((*x.shape[:-1], 0)),
        "objects": np.full(x.shape, object()),
        "missing numbers": np.full(x.shape, None),
    }
