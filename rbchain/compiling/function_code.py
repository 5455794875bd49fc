"""Names that the code of a function reads: globals, attributes and modules."""

import contextlib
import dis
import importlib
import types


def describe_code(code):
    """Describe where a function is defined, its instructions, names and constants.

    A file may define two functions of the same name, such as in the branches of an `if`.
    """
    return code.co_firstlineno, code.co_code.hex(), code.co_names, [_constant(value) for value in code.co_consts]


def _constant(value):
    if isinstance(value, types.CodeType):
        return describe_code(value)
    return sorted(map(repr, value)) if isinstance(value, frozenset) else repr(value)


def _codes(code):
    """Yield some code, and the code of the functions inside it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _codes(inner)


def globals_read(code):
    """The names of the globals that some code reads."""
    read = ("LOAD_GLOBAL", "LOAD_NAME")
    return {step.argval for part in _codes(code) for step in dis.get_instructions(part) if step.opname in read}


def names_in(code):
    """All names in some code, of globals and of attributes."""
    return {name for part in _codes(code) for name in part.co_names}


def imported_inside(code, globals_):
    """Yield the modules that some code imports when it runs, by name."""
    for part in _codes(code):
        steps = list(dis.get_instructions(part))
        for level, _, step in zip(steps[:-2], steps[1:-1], steps[2:], strict=True):
            if step.opname == "IMPORT_NAME":
                with contextlib.suppress(Exception):  # any error of a module; the code may not need it
                    name = "." * level.argval + step.argval
                    yield f"(import) {name}", importlib.import_module(name, globals_.get("__package__"))
