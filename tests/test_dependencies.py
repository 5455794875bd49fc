"""What user functions depend on: every change of it changes their description, in every process."""

import collections
import dataclasses
import enum
import functools
import importlib
import os
import subprocess
import sys
import types

import numba
import numpy as np
import pytest

from rbchain.compiling.dependencies import Dependencies, dependencies_of

SETTINGS = types.ModuleType("settings_of_tests")
SETTINGS.nested = types.ModuleType("settings_of_tests.nested")
GAIN, TABLE, CHOICES = 1.0, np.ones(3), {"gain": [1.0, 2.0], "names": {"a", "b", "c"}}


class Base:
    gain = 1.0

    @property
    def twice(self):
        return 2.0 * self.gain


class Class(Base):
    """Inherits its gain."""


class Bound:
    def __init__(self, gain):
        self.inner = types.SimpleNamespace(gain=gain)

    def force(self, t):
        return self.inner.gain

    def __call__(self, t):
        return self.inner.gain


class Slots:
    __slots__ = ("gain",)

    def __init__(self, gain):
        self.gain = gain


class PrivateSlots:
    __slots__ = ("__gain", "name")

    def __init__(self, gain):
        self.__gain, self.name = gain, "name"


class Computed(collections.OrderedDict):
    @functools.cached_property
    def gain(self):
        return 1.0


class NotPickled:
    def __init__(self, gain):
        self.gain = gain

    def __reduce__(self):
        raise TypeError


@dataclasses.dataclass
class Data:
    gain: float
    table: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(2))


class Mode(enum.Enum):
    GAIN = 1.0


class OfDict(dict):
    gain = 1.0


class OfDefaultDict(collections.defaultdict):
    """Has a factory, items and attributes."""


class OfDeque(collections.deque):
    """Has a length, items and attributes."""


class OfArray(np.ndarray):
    gain = 1.0


class OfPartial(functools.partial):
    gain = 1.0


class Callable:
    """Replaces a function, as an object of a class that decorates does."""

    def __init__(self, function, gain):
        functools.update_wrapper(self, function)
        self.gain = gain

    def __call__(self, t):
        return self.gain


def one():
    return 1.0


def two():
    return 2.0


def with_gain(value, gain):
    value.gain = gain
    return value


Point = collections.namedtuple("Point", "x y")
MODE, DATA, SLOTS, POINT, OF_DICT = Mode.GAIN, Data(1.0), Slots(1.0), Point(1.0, 2.0), OfDict(gain=1.0)
FACTORIES = collections.defaultdict(one)
GENERATOR = np.random.default_rng(3)


def by_global(t):
    return GAIN


def by_helper(t):
    return by_global(t)


def by_inner_function(t):
    return [*map(lambda x: x * GAIN, range(3))]


def by_array(t):
    return TABLE[0]


def by_dict(t):
    return CHOICES["gain"][0]


def by_class(t):
    return Class.gain + Class().twice


def by_module(t):
    return SETTINGS.gain + SETTINGS.nested.gain


def by_getattr(t):
    return getattr(SETTINGS, "ga" + "in")


def by_globals(t):
    return globals()["GA" + "IN"]


def by_import(t):
    from tests.settings_of_functions import GAIN

    return GAIN


def by_default(t, gain=1.0, *, more=None):
    return gain


def by_attribute(t):
    return by_attribute.gain


def by_data(t):
    return DATA.gain + DATA.table[0]


def by_slots(t):
    return SLOTS.gain


def by_enum(t):
    return MODE.value


def by_tuple(t):
    return POINT.x


def by_subclass_of_dict(t):
    return OF_DICT["gain"] + OF_DICT.gain


def by_random_numbers(t):
    return GENERATOR.normal()


def closure(gain):
    def inner(t):
        return gain

    return inner


def decorated(gain):
    def decorate(function):
        @functools.wraps(function)
        def inner(t):
            return gain * function(t)

        return inner

    return decorate


@numba.njit
def compiled(t):
    return GAIN * t


@functools.cache
def remembered(t):
    return GAIN


def in_this_module(name, value):
    return lambda patch: patch.setattr(sys.modules[__name__], name, value)


def attribute(owner, name, value):
    return lambda patch: patch.setattr(owner, name, value, raising=False)


def item(owner, key, value):
    return lambda patch: patch.setitem(owner, key, value)


#: Functions, and changes on which they depend.
CHANGES = {
    "global": (by_global, in_this_module("GAIN", 2.0)),
    "type of a global": (by_global, in_this_module("GAIN", 1)),
    "global of a helper": (by_helper, in_this_module("GAIN", 2.0)),
    "helper": (by_helper, in_this_module("by_global", by_array)),
    "global of an inner function": (by_inner_function, in_this_module("GAIN", 2.0)),
    "array": (by_array, in_this_module("TABLE", np.array([1.0, 1.0, 2.0]))),
    "shape of an array": (by_array, in_this_module("TABLE", np.ones((3, 1)))),
    "entry of a dict": (by_dict, item(CHOICES, "gain", [1.0, 3.0])),
    "entry of a set": (by_dict, item(CHOICES, "names", {"a", "b", "d"})),
    "attribute of a base class": (by_class, attribute(Base, "gain", 2.0)),
    "method of a base class": (by_class, attribute(Base, "twice", property(lambda self: 3.0))),
    "attribute of a module": (by_module, attribute(SETTINGS, "gain", 2.0)),
    "attribute of a module in a module": (by_module, attribute(SETTINGS.nested, "gain", 2.0)),
    "getattr": (by_getattr, attribute(SETTINGS, "gain", 2.0)),
    "globals()": (by_globals, in_this_module("GAIN", 2.0)),
    "module that is imported inside": (by_import, lambda patch: patch.setattr("tests.settings_of_functions.GAIN", 2.0)),
    "default": (by_default, attribute(by_default, "__defaults__", (2.0,))),
    "keyword default": (by_default, attribute(by_default, "__kwdefaults__", {"more": 1.0})),
    "attribute of a function": (by_attribute, attribute(by_attribute, "gain", 2.0)),
    "dataclass": (by_data, attribute(DATA, "gain", 2.0)),
    "array of a dataclass": (by_data, attribute(DATA, "table", np.ones(2))),
    "slot": (by_slots, attribute(SLOTS, "gain", 2.0)),
    "enum": (by_enum, in_this_module("MODE", enum.Enum("Mode", {"GAIN": 2.0}).GAIN)),
    "named tuple": (by_tuple, in_this_module("POINT", Point(2.0, 2.0))),
    "entry of a subclass of dict": (by_subclass_of_dict, item(OF_DICT, "gain", 2.0)),
    "attribute of a subclass of dict": (by_subclass_of_dict, attribute(OF_DICT, "gain", 2.0)),
    "factory of a dict": (lambda t: FACTORIES["gain"], attribute(FACTORIES, "default_factory", two)),
    "state of a generator of random numbers": (by_random_numbers, lambda patch: GENERATOR.normal()),
    "compiled function": (compiled, in_this_module("GAIN", 2.0)),
    "cached function": (remembered, in_this_module("GAIN", 2.0)),
    "partial": (functools.partial(by_helper), in_this_module("GAIN", 2.0)),
    "method": (Bound(1.0).force, attribute(Bound, "force", lambda self, t: 0.0)),
    "wrapped function": (decorated(1.0)(by_global), in_this_module("GAIN", 2.0)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_anything_that_a_function_reads_changes_its_description(change, monkeypatch):
    function, make = CHANGES[change]
    before, again = dependencies_of(function).digest, dependencies_of(function).digest
    assert before == again
    make(monkeypatch)
    assert dependencies_of(function).digest != before


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (closure(1.0), closure(2.0)),
        (functools.partial(by_default, gain=1.0), functools.partial(by_default, gain=2.0)),
        (functools.partial(by_default, 1.0), functools.partial(by_default, 2.0)),
        (Bound(1.0).force, Bound(2.0).force),
        (Bound(1.0), Bound(2.0)),
        (decorated(1.0)(by_global), decorated(2.0)(by_global)),
        (lambda t: {"a", "b"}, lambda t: {"a", "c"}),
        ({"gain": 1.0}.get, {"gain": 2.0}.get),
        (Data(1.0), Data(1.0, np.ones(2))),
        (np.vectorize(closure(1.0)), np.vectorize(closure(2.0))),
        (collections.defaultdict(one), collections.defaultdict(two)),
        (collections.defaultdict(one, gain=1.0), collections.defaultdict(one, gain=2.0)),
        (OfDefaultDict(one), OfDefaultDict(two)),
        (with_gain(OfDefaultDict(one), 1.0), with_gain(OfDefaultDict(two), 1.0)),
        (with_gain(OfDefaultDict(one), 1.0), with_gain(OfDefaultDict(one), 2.0)),
        (types.MappingProxyType(OfDefaultDict(one)), types.MappingProxyType(OfDefaultDict(two))),
        (collections.OrderedDict(a=1, b=2), collections.OrderedDict(b=2, a=1)),
        (with_gain(collections.OrderedDict(), 1.0), with_gain(collections.OrderedDict(), 2.0)),
        (with_gain(collections.Counter("ab"), 1.0), with_gain(collections.Counter("ab"), 2.0)),
        (collections.Counter("ab"), collections.Counter("aab")),
        (collections.Counter("ab"), {"a": 1, "b": 1}),
        (collections.deque([1.0], 2), collections.deque([1.0], 3)),
        (with_gain(OfDeque([1.0], 2), 1.0), with_gain(OfDeque([1.0], 3), 1.0)),
        (with_gain(OfDeque([1.0], 2), 1.0), with_gain(OfDeque([2.0], 2), 1.0)),
        (Point(1.0, 2.0), collections.namedtuple("Point", "y x")(1.0, 2.0)),
        (with_gain(np.ones(2).view(OfArray), 1.0), with_gain(np.ones(2).view(OfArray), 2.0)),
        (np.ones(2).view(OfArray), np.ones(2).view(type("OfArray", (np.ndarray,), {"gain": 2.0}))),
        (np.ma.array([1.0, 2.0], mask=[0, 1]), np.ma.array([1.0, 2.0], mask=[1, 0])),
        (OfPartial(one), type("OfPartial", (functools.partial,), {"gain": 2.0})(one)),
        (Callable(one, 1.0), Callable(one, 2.0)),
        (PrivateSlots(1.0), PrivateSlots(2.0)),
        (NotPickled(1.0), NotPickled(2.0)),
        (with_gain(functools.cache(closure(1.0)), 1.0), with_gain(functools.cache(closure(1.0)), 2.0)),
        (True, 1),
        (0.0, -0.0),
        ([1.0], (1.0,)),
    ],
)
def test_functions_and_objects_with_other_contents_have_other_descriptions(one, other):
    assert dependencies_of(one).digest != dependencies_of(other).digest


@pytest.mark.parametrize(
    "make",
    [
        *(lambda: closure(1.0), lambda: Bound(1.0).force, lambda: Data(1.0), lambda: Slots(2)),
        *(lambda: OfDefaultDict(one, gain=1.0), lambda: collections.Counter("ab"), lambda: OfDeque([1.0], 2)),
        *(lambda: np.ones(2).view(OfArray), lambda: np.ma.array([1.0], mask=[1]), lambda: OfPartial(one)),
    ],
)
def test_equal_functions_and_objects_have_equal_descriptions(make):
    assert dependencies_of(make()).digest == dependencies_of(make()).digest


@pytest.mark.parametrize(
    ("value", "use"),
    [
        (Computed(a=1.0), lambda value: value.gain),
        (np.ma.array([1.0, 2.0], mask=[0, 1]), np.ma.filled),
        (functools.cache(by_default), lambda value: value(1.0)),
    ],
)
def test_values_that_an_object_keeps_when_it_is_used_do_not_change_its_description(value, use):
    before = dependencies_of(value).digest
    use(value)
    assert dependencies_of(value).digest == before


def test_functions_and_objects_that_refer_to_each_other_are_described():
    one, other = Bound(1.0), Bound(2.0)
    one.inner.other, other.inner.other = other, one
    before = dependencies_of(one.force).digest
    other.inner.gain = 3.0
    assert dependencies_of(one.force).digest != before


def test_what_cannot_be_described_is_named():
    def counted(t):
        return next(steps)

    steps = (i for i in range(3))
    dependencies = Dependencies()
    dependencies.describe(counted)
    assert dependencies.unknown == ["steps, a builtins.generator"]


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda t: open("file"), "open"),  # noqa: SIM115
        (lambda t: np.load("file"), "load"),
        (lambda t: os.environ["GAIN"], "environ"),
        (lambda t: Bound(np.loadtxt("file")), "loadtxt"),
    ],
)
def test_functions_that_read_files_or_environment_variables_are_named(function, name):
    dependencies = Dependencies()
    dependencies.describe(function)
    assert [text.rpartition(" ")[2] for text in dependencies.read] == [name]


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A function that writes package `helpers_of_tests` with a module `gains`, as if in a new process."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(gain):
        for name in [name for name in sys.modules if name.startswith("helpers_of_tests")]:
            monkeypatch.delitem(sys.modules, name)
        (tmp_path / "helpers_of_tests").mkdir(exist_ok=True)
        (tmp_path / "helpers_of_tests" / "__init__.py").write_text(f"def top():\n    return {gain}\n")
        (tmp_path / "helpers_of_tests" / "gains.py").write_text(f"def gain():\n    return {gain}\n")
        importlib.invalidate_caches()

    yield write
    for name in [name for name in sys.modules if name.startswith("helpers_of_tests")]:
        del sys.modules[name]


def defined(text):
    """Return the function f of a text."""
    values = {"__name__": "functions_of_tests"}
    exec(text, values)
    return values["f"]


GAINS = "helpers_of_tests.gains"
IMPORTS = {
    "import_module": f"import importlib\ndef f(t): return importlib.import_module({GAINS!r}).gain()",
    "__import__": f"def f(t): return __import__({GAINS!r}).gains.gain()",
    "modules": f"import sys, {GAINS}\ndel helpers_of_tests\ndef f(t): return sys.modules[{GAINS!r}].gain()",
    "get": f"import sys, {GAINS}\ndel helpers_of_tests\ndef f(t): return sys.modules.get({GAINS!r}).gain()",
    "another name": f"from importlib import import_module as load\ndef f(t): return load({GAINS!r}).gain()",
    "a variable": f"import importlib\nNAME = {GAINS!r}\ndef f(t): return importlib.import_module(NAME).gain()",
    "relative": "import importlib\ndef f(t): return importlib.import_module('.gains', 'helpers_of_tests').gain()",
    "closure": "import importlib\ndef make(load): return lambda t: load('helpers_of_tests.gains').gain()\n"
    "f = make(importlib.import_module)",
    "outer package": f"def f(t):\n    import {GAINS}\n    return helpers_of_tests.top()",
    "module of a package": "def f(t):\n    from helpers_of_tests import gains\n    return gains.gain()",
}


@pytest.mark.plain_python
@pytest.mark.parametrize("text", IMPORTS.values(), ids=IMPORTS)
def test_changes_of_modules_that_a_function_imports_by_name_are_noticed(package, text):
    found = []
    for gain in (1.0, 1.0, 2.0):
        package(gain)
        dependencies = Dependencies()
        found.append(dependencies.describe(defined(text)).digest)
        assert dependencies.imports == []
    assert found[0] == found[1] != found[2]


@pytest.mark.plain_python
@pytest.mark.parametrize(
    ("text", "name"),
    {
        "a text that is put together": (
            "import importlib\ndef f(t): importlib.import_module('a' + t)",
            "import_module",
        ),
        "an argument": ("import importlib\nn = 'os'\ndef f(n): importlib.import_module(n)", "import_module"),
        "a module that is not loaded": ("import sys\ndef f(t): sys.modules['not_there'].gain()", "modules"),
        "all modules": ("import sys\ndef f(t): return [*sys.modules]", "modules"),
        "code in a text": ("def f(t): exec('import not_there')", "import in a text"),
        "a default": ("import importlib\ndef f(t, load=importlib.import_module): load(t)", "import_module"),
        "a partial function": (
            "import functools, importlib\nf = functools.partial(importlib.import_module, 'a')",
            "import_module",
        ),
        "within": ("def f(t):\n    from importlib import import_module\n    import_module(t)", "import_module"),
        "a file": ("import runpy\ndef f(t): runpy.run_path('file.py')", "run_path"),
    }.values(),
)
def test_functions_that_import_unknown_modules_are_named(text, name):
    dependencies = Dependencies()
    dependencies.describe(defined(text))
    assert [text.rpartition(": ")[2] for text in dependencies.imports] == [name]


def digests():
    SETTINGS.gain = SETTINGS.nested.gain = by_attribute.gain = 1.0
    return "\n".join(f"{name} {dependencies_of(function).digest}" for name, (function, _) in CHANGES.items())


@pytest.mark.slow
def test_every_process_describes_a_function_in_the_same_way():
    """The order of texts in sets, and the addresses of objects, differ from process to process."""
    found = {
        subprocess.run(
            [sys.executable, "-c", "from tests.test_dependencies import digests; print(digests())"],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
