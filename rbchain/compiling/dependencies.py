"""Dependencies of a user's function: its code, and everything that its names, its closure and its object refer to.

Numba compiles the values of globals into the code, and studies continue with stored results. Either would use old
numbers if it ignored the values that a function reads. Equal functions have equal descriptions, in every process.
"""

import collections
import enum
import functools
import gc
import hashlib
import inspect
import re
import types
import weakref
from typing import NamedTuple

import numpy as np

from .function_code import globals_read, imported_inside, importer_of, names_in
from .origins import is_known, module_of, name_of, package_of, version_of

SCALARS = (bool, int, float, complex, str, bytes, np.generic, type(None), type(Ellipsis), range)
#: Attributes of classes that Python, `abc`, `copyreg`, `dataclasses` or pydantic add, and that no function reads.
OF_CLASSES = re.compile(
    "__(dict|weakref|doc|module|annotations|firstlineno|static_attributes|slotnames|match_args|abstractmethods)__"
    "|__signature__|__(dataclass|pydantic|class_vars|private_attributes).*|_abc_impl|__(orig_bases|parameters|subclasshook|repr)__"
)
#: Variables of modules that Python adds.
OF_MODULES = {*dir(types.ModuleType("")), "__builtins__"}
#: Names by which code reaches all attributes of a module.
ALL_ATTRIBUTES = {"getattr", "vars", "globals", "eval", "exec", "__dict__", "attrgetter"}
#: Names by which code reads files or environment variables.
READERS = {
    *("open", "environ", "getenv", "loadtxt", "genfromtxt", "fromfile", "memmap", "loadmat", "read_text", "read_bytes"),
    *("read_csv", "read_excel", "read_parquet", "urlopen"),
}
DESCRIPTORS = (
    *(types.GetSetDescriptorType, types.MemberDescriptorType, types.WrapperDescriptorType),
    *(types.MethodDescriptorType, types.ClassMethodDescriptorType),
)
#: Containers whose items are their whole state; their subclasses can have more.
CONTAINERS = (dict, list, tuple, set, frozenset)
WITHOUT_STATE = ("_thread.lock", "_thread.RLock", "logging.Logger", "logging.RootLogger")


class Described(NamedTuple):
    """The description of a value: its kind and name, its own content, and the descriptions of its parts by name.

    Equal values have equal digests.
    """

    kind: str
    name: str
    own: str
    parts: tuple
    digest: str


class Dependencies:
    """Describes values, and lists the values that it cannot describe.

    Attributes
    ----------
    unknown : list of str
        Values whose changes would not be noticed, such as an open file, by where they were found.
    read : list of str
        Functions by which the described functions read files and environment variables.
    imports : list of str
        Functions by which the described functions import modules that cannot be determined from their code.
    """

    def __init__(self):
        self.unknown, self.read, self.imports = [], [], []
        self._digests, self._active, self._kept, self._path = {}, {}, [], []

    def describe(self, value, name="", names=None):
        """Describe a value; of a module, only the attributes with these names, or all if there are no names."""
        if isinstance(value, SCALARS) and type(value).__module__ in ("builtins", "numpy"):
            return _described("value", "", repr(value))
        names = frozenset(names) if names is not None and isinstance(value, types.ModuleType) else None
        key = (id(value), names)
        if key in self._digests:
            return Described("same", "", "", (), self._digests[key])
        if key in self._active:
            return _described("cycle", "", str(self._active[key]))
        self._active[key] = len(self._active)
        self._kept.append(value)  # so that no other object gets its id
        self._path.append(name)
        found = self._describe(value, names)
        self._path.pop()
        del self._active[key]
        self._digests[key] = found.digest
        return found

    def _describe(self, value, names):
        if importer := importer_of(value):  # not called by its name, so its arguments are not known
            self.imports.append(f"{'.'.join(filter(None, self._path))}: {importer}")
            return _described("importer", importer, "")
        if isinstance(value, types.ModuleType):
            return self._module(value, names)
        compiled = getattr(value, "py_func", None) or getattr(value, "_pyfunc", None)
        if isinstance(compiled, types.FunctionType) and package_of(type(value).__module__) == "numba":
            options = getattr(value, "targetoptions", {})
            return self._of("compiled", compiled, options)
        for kind, describe in self._kinds():
            if isinstance(value, kind):
                found, cls = describe(value), type(value)
                if kind in (type, enum.Enum) or is_known(cls.__module__):
                    return found
                parts = (("class", self.describe(cls, "class")), ("content", found))
                return _described("object", name_of(cls), "", parts + self._parts(_attributes(value)))
        return self._object(value)

    def _kinds(self):
        """The types that have their own description function, the most special ones first."""
        return (
            (types.FunctionType, self._function),
            (types.CodeType, self._code),
            (type, self._class),
            (enum.Enum, lambda x: self._of("enum", type(x), x.name, x.value)),
            (functools.partial, self._partial),
            (types.MethodType, lambda x: self._named("method", function=x.__func__, object=x.__self__)),
            ((staticmethod, classmethod), lambda x: self._of(type(x).__name__, x.__func__)),
            (property, lambda x: self._of("property", x.fget, x.fset, x.fdel)),
            (functools.cached_property, lambda x: self._of("property", x.func)),
            (types.CellType, self._cell),
            (weakref.ref, lambda x: self._of("weakref", x())),
            ((types.BuiltinFunctionType, types.MethodWrapperType), self._builtin),
            (DESCRIPTORS, lambda x: _described("descriptor", x.__name__, "")),
            (np.ma.MaskedArray, lambda x: self._of("masked array", x.data, np.ma.getmaskarray(x), x.fill_value)),
            (np.ndarray, self._array),
            (types.MappingProxyType, lambda x: self._of("proxy", *gc.get_referents(x))),  # the mapping behind it
        )

    # --- code ---------------------------------------------------------------------------------------------------------

    def _function(self, function):
        if is_known(function.__module__):
            return self._imported("function", function)
        code, globals_ = function.__code__, function.__globals__
        names, attributes = globals_read(code), names_in(code)
        loads = {"load"} if any(globals_.get(name) is np for name in names) else set()  # np.load
        self.read += [f"{name_of(function)}: {name}" for name in sorted((READERS | loads) & attributes)]
        chosen = names if not {"globals", "eval", "exec"} & names else set(globals_) - OF_MODULES
        closure = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        contents = {name: _content(cell) for name, cell in closure.items()}
        imported, unresolved = imported_inside(code, collections.ChainMap(contents, globals_))
        self.imports += [f"{name_of(function)}: {importer}" for importer in unresolved]
        parts = {
            "(code)": code,
            "(defaults)": function.__defaults__,
            "(keyword defaults)": function.__kwdefaults__,
            **{name: cell for name, cell in closure.items() if not importer_of(contents[name])},
            **{name: globals_[name] for name in sorted(chosen) if name in globals_ and not importer_of(globals_[name])},
            **{f"(attribute) {name}": value for name, value in vars(function).items()},
            **imported,
        }
        attributes = None if attributes & ALL_ATTRIBUTES else attributes
        described = [(name, self.describe(value, name, attributes)) for name, value in parts.items()]
        return _described("function", name_of(function), "", tuple(described))

    def _code(self, code):
        content = (code.co_code.hex(), code.co_names, code.co_freevars, code.co_cellvars, code.co_varnames)
        return _described("code", code.co_name, repr(content), self._parts(dict(enumerate(code.co_consts))))

    def _class(self, cls):
        if is_known(cls.__module__):
            return self._imported("class", cls)
        own = {name: value for name, value in vars(cls).items() if not OF_CLASSES.fullmatch(name)}
        bases = {f"base {i}": base for i, base in enumerate(cls.__bases__)}
        return _described("class", name_of(cls), "", self._parts(bases | own | {"metaclass": type(cls)}))

    def _module(self, module, names):
        if is_known(module.__name__):
            return self._imported("module", module)
        chosen = sorted(vars(module) if names is None else names)
        values = {name: getattr(module, name) for name in chosen if not name.startswith("__") and hasattr(module, name)}
        described = tuple((name, self.describe(value, name, names)) for name, value in values.items())
        return _described("module", module.__name__, "", described)

    def _imported(self, kind, value):
        """Describe an object of an installed package by its name, the package's version and the module's file."""
        module = getattr(value, "__name__", "") if kind == "module" else value.__module__
        return _described(kind, name_of(value), version_of(str(module)))

    def _partial(self, value):
        parts = {"function": value.func, "arguments": value.args, "keywords": value.keywords}
        return self._named("partial", **parts, attributes=vars(value))

    def _builtin(self, value):
        owner = getattr(value, "__self__", None)
        if owner is None or isinstance(owner, types.ModuleType):
            return _described("function", name_of(value), version_of(str(getattr(value, "__module__", ""))))
        return _described("method", value.__name__, "", self._parts({"self": owner}))

    # --- data ---------------------------------------------------------------------------------------------------------

    def _of(self, kind, *parts):
        return _described(kind, "", "", self._parts(dict(enumerate(parts))))

    def _named(self, kind, **parts):
        return _described(kind, "", "", self._parts(parts))

    def _parts(self, parts):
        return tuple((str(name), self.describe(value, str(name))) for name, value in parts.items())

    def _cell(self, cell):
        try:
            return self.describe(cell.cell_contents)
        except ValueError:  # a variable without a value
            return _described("empty", "", "")

    def _array(self, array):
        cls, name = type(array), f"{array.dtype} {array.shape} {type(array).__name__}"
        if cls.__reduce__ is not np.ndarray.__reduce__ or cls.__reduce_ex__ is not np.ndarray.__reduce_ex__:
            return _described("array", name, "", self._parts(self._reduced(array)))  # such as an array with a unit
        if array.dtype.hasobject:
            return _described("array", name, "", self._parts(dict(enumerate(array.ravel().tolist()))))
        digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
        return _described("array", name, digest)

    def _object(self, value):
        cls = type(value)
        name = name_of(cls)
        if name in WITHOUT_STATE:
            return _described("object", name, "")
        if package_of(cls.__module__) in ("numba", "llvmlite"):
            return _described("object", name, re.sub(r" at 0x[0-9a-f]+", "", str(value)))
        if callable(value) and hasattr(value, "__wrapped__"):
            if is_known(cls.__module__):  # a function with functools.cache
                attributes = {name: x for name, x in vars(value).items() if not name.startswith("__")}
                return self._of("wrapper", cls, value.__wrapped__, attributes)
        elif callable(value) and hasattr(value, "__qualname__"):  # a function of an extension module
            return self._imported("function", value)
        parts = _contents(value)
        if cls not in CONTAINERS:
            parts = (parts or {}) | self._state(value, is_container=parts is not None)
        return _described("object", name, "", (("class", self.describe(cls, "class")), *self._parts(parts)))

    def _state(self, value, is_container):
        """Return the attributes of an object, and the values that `pickle` would store besides the items."""
        cls = type(value)
        has_attributes = is_container or not is_known(cls.__module__)
        own = _attributes(value) if has_attributes else {}
        if isinstance(value, (set, frozenset)):  # `pickle` would store the items in the order of their hashes
            return own
        reduced = self._reduced(value)
        if is_container:
            reduced = {name: x for name, x in reduced.items() if name not in ("(items)", "(entries)")}
        is_default = cls.__reduce_ex__ is object.__reduce_ex__ and cls.__reduce__ is object.__reduce__
        state = reduced.get("(state)")
        if has_attributes and ((is_default and own) or _is_copy(state, getattr(value, "__dict__", None))):
            reduced["(state)"] = None  # the attributes, with those that are computed when they are first read
        return own | reduced

    def _reduced(self, value):
        """Return the values that `pickle` would store, by name; nothing if it cannot store the object."""
        try:
            reduced = value.__reduce_ex__(4)
        except Exception:  # any error that a class raises
            if not _is_plain(type(value)):
                self.unknown.append(f"{'.'.join(filter(None, self._path))}, a {name_of(type(value))}")
            return {}
        if isinstance(reduced, str):
            return {"(global)": f"{module_of(value)}.{reduced}"}
        made, arguments, state, items, entries, *_ = (*reduced, *[None] * 4)
        parts = {"(made by)": made, "(arguments)": arguments, "(state)": state}
        return parts | {"(items)": list(items or ()), "(entries)": list(entries or ())}


def dependencies_of(function):
    """Describe a function and everything that its names refer to, as tuples of text, whose `repr` identifies it."""
    return Dependencies().describe(function)


def _described(kind, name, own, parts=()):
    digests = [(part, described.digest) for part, described in parts]
    return Described(kind, name, own, parts, hashlib.sha256(repr((kind, name, own, digests)).encode()).hexdigest())


def _contents(value):
    """Return the items of a container by name, and None for other objects. The order in sets means nothing."""
    if isinstance(value, dict):
        if all(type(key) is str for key in value):
            return {f"[{key!r}]": item for key, item in value.items()}
        return {f"{i} {side}": pair[side] for i, pair in enumerate(value.items()) for side in (0, 1)}
    if isinstance(value, (set, frozenset)):
        return dict(enumerate(sorted(value, key=lambda x: dependencies_of(x).digest)))
    if isinstance(value, (tuple, list)):
        return dict(enumerate(value))
    if isinstance(value, SCALARS):  # of a subclass
        return {"value": next(kind for kind in SCALARS if isinstance(value, kind)).__repr__(value)}
    return None


def _content(cell):
    """Return the content of a variable of an enclosing function; None if it has no value yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _attributes(value):
    """Return the attributes of an object and the values in its slots, by name, without values that it can compute."""
    caches = {name for name, x in inspect.getmembers_static(type(value)) if type(x).__name__ == "cached_property"}
    own = {name: x for name, x in getattr(value, "__dict__", {}).items() if name not in caches}
    slots = [name for base in type(value).__mro__ for name in _slots(base) if hasattr(value, name)]
    return own | {name: getattr(value, name) for name in slots if name not in ("__dict__", "__weakref__")}


def _is_plain(cls):
    """Whether all bases of a class are written in Python, and so its attributes are its whole state."""
    return all(
        base is object
        or not is_known(base.__module__)
        or "__slots__" in vars(base)
        or any(isinstance(x, types.FunctionType) for x in vars(base).values())
        for base in cls.__mro__
    )


def _slots(cls):
    """Return the names of the slots of a class, as attributes: Python adds the class to private ones."""
    slots = vars(cls).get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    private = [name for name in names if name.startswith("__") and not name.endswith("__")]
    return tuple(f"_{cls.__name__.lstrip('_')}{name}" if name in private else name for name in names)


def _is_copy(state, attributes):
    """Whether a state has the attributes of an object and nothing else."""
    if not isinstance(state, dict) or attributes is None or state.keys() != attributes.keys():
        return False
    return all(state[name] is attributes[name] for name in state)
