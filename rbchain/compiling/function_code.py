"""Names that the code of a function reads: globals, attributes and modules."""

import builtins
import contextlib
import dis
import functools
import importlib
import sys
import types

#: Instructions that neither load nor use a value.
WITHOUT_VALUE = ("EXTENDED_ARG", "PUSH_NULL", "PRECALL", "CACHE", "NOT_TAKEN")
#: Instructions that load a variable of the module or of an enclosing function.
VARIABLES = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF")
#: Functions that import a module by a text, and the modules that are imported.
IMPORTERS = {"import_module": importlib.import_module, "__import__": builtins.__import__, "modules": sys.modules}
NAMES_OF_IMPORTERS = {
    *("import_module", "__import__", "exec_module", "load_module", "load_source", "spec_from_file_location"),
    *("run_path", "run_module", "resolve_name"),
}


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


@functools.lru_cache(maxsize=1024)
def _instructions(code):
    """Return the instructions of some code, without those that neither load nor use a value."""
    return tuple(step for step in dis.get_instructions(code) if step.opname not in WITHOUT_VALUE)


def globals_read(code):
    """The names of the globals that some code reads."""
    read = ("LOAD_GLOBAL", "LOAD_NAME")
    return {step.argval for part in _codes(code) for step in _instructions(part) if step.opname in read}


def names_in(code):
    """All names in some code, of globals and of attributes."""
    return {name for part in _codes(code) for name in part.co_names}


def imported_inside(code, variables):
    """Return the modules that some code imports when it runs, by name, and imports whose module cannot be determined.

    Parameters
    ----------
    code : types.CodeType
    variables : dict
        Values of the globals and of the closure, by name.
    """
    modules, unresolved = {}, []
    for part in _codes(code):
        steps = _instructions(part)
        for i, step in enumerate(steps):
            importer = _importer(steps, i, variables)
            if step.opname == "IMPORT_NAME":
                name, (level, names) = step.argval, (earlier.argval for earlier in steps[i - 2 : i])
                modules |= _modules("." * level + name, variables.get("__package__"), names or ())
            elif importer:
                arguments = _arguments(steps, i + 1, variables)
                is_known = arguments and (importer != "modules" or arguments[0] in sys.modules)
                found = _modules(*arguments) if is_known else {}
                modules |= found
                unresolved += [] if found else [importer]
    texts = {text for part in _codes(code) for text in part.co_consts if isinstance(text, str)}
    if {"eval", "exec"} & names_in(code) and any("import" in text for text in texts):
        unresolved.append("import in a text")
    return {f"(import) {name}": module for name, module in modules.items()}, unresolved


def importer_of(value):
    """Return the name of a function or dictionary by which code reaches modules, or an empty text for other values."""
    return next((name for name, importer in IMPORTERS.items() if value is importer), "")


def _importer(steps, i, variables):
    """Return the name of the function or dictionary by which an instruction reaches modules, or an empty text."""
    step = steps[i]
    if step.opname in VARIABLES:
        return importer_of(variables.get(step.argval, vars(builtins).get(step.argval)))
    if step.opname in ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM"):
        if step.argval == "modules" and (steps[i - 1].argval == "sys" or variables.get(steps[i - 1].argval) is sys):
            return "modules"
        return step.argval if step.argval in NAMES_OF_IMPORTERS else ""
    return ""


def _arguments(steps, i, variables):
    """Return the texts with which a call that begins at instruction i is made; an empty list if they are not known."""
    if steps[i].argval == "get":  # of sys.modules
        i += 1
    texts = []
    for step in steps[i : i + 3]:
        if step.opname in ("CALL", "BINARY_SUBSCR") or step.argrepr == "[]":
            return texts if step.opname != "CALL" or step.arg == len(texts) else []
        value = variables.get(step.argval) if step.opname in VARIABLES else step.argval
        if step.opname not in (*VARIABLES, "LOAD_CONST") or not isinstance(value, str):
            return []
        texts.append(value)
    return []


def _modules(name, package=None, names=()):
    """Import a module, the packages in which it is, and the modules among some names in it; return all."""
    found = {}
    with contextlib.suppress(Exception):  # any error of a module; the code may not need it
        module = importlib.import_module(name, package)
        parts = module.__name__.split(".")
        found |= {outer: sys.modules[outer] for outer in (".".join(parts[: n + 1]) for n in range(len(parts)))}
        found[name] = module
        for inner in names:
            if not hasattr(module, inner):
                with contextlib.suppress(ImportError):
                    found[f"{name}.{inner}"] = importlib.import_module(f"{module.__name__}.{inner}")
    return found
