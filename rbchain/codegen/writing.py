"""Write recorded functions as source code in C, Python (NumPy) or MATLAB."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from .recording import Number, Recorded, sorted_nodes

#: A recorded function: its name, the sizes of its arguments, the shape of its result, and the result's entries.
Function = tuple[str, dict[str, int], tuple[int, ...], list[Number]]

FUNCTIONS = ("sin", "cos", "sqrt")
UNITS = {
    "q": "positions, rad or m (quaternions [x, y, z, w])",
    "qd": "velocities, rad/s or m/s",
    "tau": "joint forces, N m or N",
    "mass_matrix": "kg m^2, kg m or kg",
    "coriolis_matrix": "joint force per joint velocity",
    "gravity_forces": "N m or N",
    "forward_dynamics": "accelerations, rad/s^2 or m/s^2",
    "jacobian": "linear (m/s), then angular (rad/s) velocity per joint velocity, world axes",
}


def write(functions: Sequence[Function], language: str, header: Sequence[str]) -> str:
    """Return the source code of functions, with the lines of `header` in a comment at the top."""
    return WRITERS[language](functions, header)


def _lines(results: Sequence[Number], entry: Callable[[str, int], str], functions: str) -> tuple[list[str], list[str]]:
    """Return an assignment for each operation, and the results as names or numbers."""
    names: dict[int, str] = {}
    lines: list[str] = []
    for node in sorted_nodes(results):
        if node.operation.endswith("]"):  # an entry of an argument, such as "q[0]"
            name, index = node.operation[:-1].split("[")
            names[id(node)] = entry(name, int(index))
        else:
            names[id(node)] = f"t{len(lines)}"
            lines.append(f"{names[id(node)]} = {_expression(node, names, functions)}")
    return lines, [_operand(x, names) for x in results]


def _operand(x: Number, names: dict[int, str]) -> str:
    return names[id(x)] if isinstance(x, Recorded) else repr(float(x))


def _expression(node: Recorded, names: dict[int, str], functions: str) -> str:
    x = [_operand(operand, names) for operand in node.operands]
    if node.operation == "-x":
        return f"-{x[0]}"
    if node.operation in FUNCTIONS:
        return f"{functions}{node.operation}({x[0]})"
    return f"{x[0]} {node.operation} {_guarded(x[1])}"


def _guarded(text: str) -> str:
    return f"({text})" if text.startswith("-") else text


def _describe(name: str, arguments: Mapping[str, int], shape: tuple[int, ...]) -> str:
    given = "; ".join(f"{a} ({size}): {UNITS[a]}" for a, size in arguments.items())
    return f"{name} {tuple(shape)}: {UNITS[name]}. Arguments: {given}."


def write_c(functions: Sequence[Function], header: Sequence[str]) -> str:
    """Return C99 functions that write their results row by row to an array."""
    parts = ["/* " + "\n   ".join(header) + "\n   Matrices are stored row by row. */", "#include <math.h>", ""]
    for name, arguments, shape, results in functions:
        lines, found = _lines(results, lambda a, i: f"{a}[{i}]", "")
        given = ", ".join(f"const double *{a}" for a in arguments)
        parts += [f"/* {_describe(name, arguments, shape)} */", f"void {name}({given}, double *result)", "{"]
        parts += [f"    const double {line};" for line in lines]
        parts += [f"    result[{i}] = {value};" for i, value in enumerate(found)]
        parts += ["}", ""]
    return "\n".join(parts)


def write_numpy(functions: Sequence[Function], header: Sequence[str]) -> str:
    """Return Python functions of NumPy arrays with any leading batch axes."""
    title = ["\n".join(header), "", "Arguments have the shape (..., m): one state or a batch of states."]
    parts = ['"""' + "\n".join(title), '"""', "", "import numpy as np", ""]
    for name, arguments, shape, results in functions:
        lines, found = _lines(results, lambda a, i: f"{a}[..., {i}]", "np.")
        parts += ["", f"def {name}({', '.join(arguments)}):", f'    """{_describe(name, arguments, shape)}"""']
        parts += [f"    {a} = np.asarray({a}, dtype=float)" for a in arguments]
        parts += [f"    {line}" for line in lines]
        parts += [f"    batch = np.broadcast_shapes({', '.join(f'{a}.shape[:-1]' for a in arguments)})"]
        parts += [f"    result = np.empty((*batch, {len(found)}))"]
        parts += [f"    result[..., {i}] = {value}" for i, value in enumerate(found)]
        parts += [f"    return result.reshape(*batch, {', '.join(map(str, shape))})", ""]
    return "\n".join(parts)


def write_matlab(functions: Sequence[Function], header: Sequence[str]) -> str:
    """Return a MATLAB function that returns a structure of handles, so that one file can hold all functions."""
    parts = ["function model = generated_model()"] + [f"% {line}" for line in header]
    parts += [f"model.{name} = @{name};" for name, *_ in functions] + ["end", ""]
    for name, arguments, shape, results in functions:
        lines, found = _lines(results, lambda a, i: f"{a}({i + 1})", "")
        parts += [f"function result = {name}({', '.join(arguments)})", f"% {_describe(name, arguments, shape)}"]
        parts += [f"{line};" for line in lines]
        rows = np.array(found, dtype=object).reshape(*shape, *([1] * (2 - len(shape))))
        parts += ["result = [" + "; ".join(", ".join(row) for row in rows) + "];", "end", ""]
    return "\n".join(parts)


WRITERS = {"c": write_c, "numpy": write_numpy, "matlab": write_matlab}
