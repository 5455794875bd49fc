"""The names of Numba that rbchain.compiling relies on exist in the installed Numba, with the expected parameters."""

import ast
import dis
import importlib
import inspect
import pkgutil

import pytest

from rbchain import compiling
from rbchain.compiling import numba_internals

MODULES = [
    importlib.import_module(found.name) for found in pkgutil.walk_packages(compiling.__path__, "rbchain.compiling.")
]
MODULES_OF_INTERNALS = [module for module in MODULES if module.__name__.startswith(numba_internals.__name__ + ".")]
#: Not in the oldest supported version: the code asks whether these attributes exist.
NEWER = {"_reload_init"}
#: The method of named tuples.
OF_PYTHON = {"_replace"}


def names_of_numba(module):
    """Return pairs of a class or module and one of its names, with the parameters if it is a function."""
    listed = getattr(module, "NUMBA_NAMES", {})
    return {(owner, expected) for owner, names in listed.items() for expected in names}


def name_of(expected):
    return expected.partition("(")[0]


def with_parameters(name, function):
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    parameters = inspect.signature(function).parameters.values()
    return f"{name}({', '.join(stars.get(parameter.kind, '') + parameter.name for parameter in parameters)})"


def attributes_of_instances(*classes):
    """Return the names of the attributes that the methods of these classes set."""
    values = [inspect.unwrap(getattr(value, "__func__", value)) for cls in classes for value in vars(cls).values()]
    steps = [step for value in values if inspect.isfunction(value) for step in dis.get_instructions(value)]
    return {step.argval for step in steps if step.opname == "STORE_ATTR"}


def bases_in_numba(cls):
    return [base for base in cls.__mro__ if base.__module__.startswith(("numba.", "llvmlite."))]


def private_or_replaced(module):
    """Return the private names that a module uses of Numba's objects, and the names that its classes replace."""
    tree = ast.parse(inspect.getsource(module))
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr.startswith("_")}
    own, found = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}, set()
    for definition in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        cls = getattr(module, definition.name)
        bases = bases_in_numba(cls)
        of_numba = {name for base in bases for name in vars(base)} | attributes_of_instances(*bases)
        own |= attributes_of_instances(cls) - of_numba
        found |= {name for name in vars(cls) if name in of_numba} & names_in_body(definition)
    return {name for name in found | (used - own) if not name.startswith("__")}


def names_in_body(definition):
    """Return the names of the methods and attributes that the body of a class defines."""
    functions = {node.name for node in definition.body if isinstance(node, ast.FunctionDef)}
    assigned = [target for node in definition.body if isinstance(node, ast.Assign) for target in node.targets]
    return functions | {target.id for target in assigned}


@pytest.mark.parametrize(("owner", "expected"), sorted(set().union(*map(names_of_numba, MODULES))))
def test_numba_has_the_name_with_these_parameters(owner, expected):
    place, name = pkgutil.resolve_name(owner), name_of(expected)
    if not hasattr(place, name):
        assert inspect.isclass(place)
        assert expected in attributes_of_instances(*place.__mro__)
    elif expected != name:
        assert with_parameters(name, getattr(place, name)) == expected


@pytest.mark.parametrize("module", MODULES_OF_INTERNALS, ids=lambda module: module.__name__.rpartition(".")[2])
def test_the_list_of_a_module_contains_all_private_and_all_replaced_names(module):
    listed = {name_of(expected) for _, expected in names_of_numba(module)}
    assert private_or_replaced(module) - NEWER - OF_PYTHON - listed == set()
