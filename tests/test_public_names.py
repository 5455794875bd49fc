"""`dir` lists the names that the reference documents. Completion, `help` and the reference show these names."""

import dataclasses
import importlib
import inspect
import pydoc
import re
from pathlib import Path

import pytest

import rbchain as rb
from rbchain.common.public_names import public_names
from rbchain.study.describe.numbers import OF_PYDANTIC

from .test_values import VALUES

pytestmark = pytest.mark.plain_python

PAGES = Path(__file__).parents[1] / "docs" / "api"
DIRECTIVE = re.compile(r"^\.\. auto(class|module):: (\S+)\n((?:   :.*\n)*)", re.MULTILINE)
CLASSES = [thing for thing in (getattr(rb, name) for name in (*rb.__all__, *rb.OF_STUDIES)) if inspect.isclass(thing)]


def directives():
    """The classes on the pages of the reference, with the members that their directives name: all if there is ""."""
    found = {}
    for page in sorted(PAGES.glob("*.md")):
        for kind, path, lines in DIRECTIVE.findall(page.read_text(encoding="utf-8")):
            options = dict(re.findall(r":([\w-]+): ?(.*)", lines))
            if kind == "class":
                module, _, name = path.rpartition(".")
                found[getattr(importlib.import_module(module), name)] = options
            else:
                for name in filter(None, options.get("members", "").split(", ")):
                    found[getattr(importlib.import_module(path), name)] = {"members": ""}
                if options.get("members") == "":
                    module = importlib.import_module(path)
                    here = [thing for thing in vars(module).values() if inspect.isclass(thing)]
                    found |= {thing: options for thing in here if thing.__module__ == path}
    return {cls: options for cls, options in found.items() if inspect.isclass(cls)}


DIRECTIVES = directives()


def documented_attributes(cls):
    """The names in the lists of parameters and attributes of a docstring."""
    text = inspect.cleandoc(cls.__doc__)
    sections = re.findall(r"^(?:Parameters|Attributes)\n-+\n(.*?)(?=\n\n\w|\Z)", text, re.MULTILINE | re.DOTALL)
    headings = [line.split(" : ")[0] for section in sections for line in section.splitlines() if line[:1].isalpha()]
    return {name for heading in headings for name in re.findall(r"\w+", heading)}


def documented_members(cls):
    """The methods and properties on the page of the class."""
    options = DIRECTIVES[cls]
    if options.get("members"):
        return set(re.findall(r"\w+", options["members"]))
    owners = cls.__mro__ if "inherited-members" in options else [cls]
    members = {name: value for owner in owners for name, value in vars(owner).items() if "members" in options}
    return {name for name, value in members.items() if hasattr(type(value), "__get__") and inspect.getdoc(value)}


def documented(cls):
    builtins = {name for base in cls.__mro__ if base.__module__.split(".")[0] != "rbchain" for name in dir(base)}
    of_python = builtins - {*OF_PYDANTIC}
    return documented_attributes(cls) | documented_members(cls) | of_python | {*getattr(cls, "__members__", ())}


def shown(names):
    return {name for name in names if not name.startswith("_")}


@pytest.mark.parametrize("cls", dict.fromkeys([*CLASSES, *DIRECTIVES]), ids=lambda cls: cls.__name__)
def test_a_public_class_shows_the_names_that_the_reference_documents(cls):
    assert cls in DIRECTIVES, "docs/api does not contain the class"
    fields = {field.name for field in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()
    fields |= {*getattr(cls, "model_fields", ())}
    assert shown(dir(cls)) | shown(public_names(cls, fields)) <= documented(cls)


def things():
    """Objects of public classes."""
    yield from (make(number) for make, number, _ in VALUES.values())
    arm = rb.Model.serial_chain(2)
    motion = arm.simulate([[0.1, 0.2]], duration=0.1, method="rk4", step=0.05, events=[rb.Event("link1", value=0.1)])
    yield from (arm, arm.vary(mass=[[1.0, 2.0]]), motion, *motion.events, arm.body["link1"], arm.joint["link1"])
    yield from (rb.ModelBuilder(), rb.Pose((1, 0, 0)), rb.options(), arm.base_parameters())
    study = rb.Study(
        arm,
        samples=2,
        simulate=rb.Simulation(0.1, method="rk4", step=0.05),
        vary={"link1.mass": rb.Dispersion(rb.Normal(1, 0.05), how="multiply")},
        measures=[rb.Measure("height", "coordinate", frame="link2", axis="y")],
    )
    yield from (study, *study.description.measures, study.description.simulate, rb.Normal(1, 0.05), study.run().rbchain)


def test_an_object_shows_the_names_that_its_class_documents():
    found = {type(thing): shown(dir(thing)) for thing in things()}
    assert len(found) > 35
    assert {cls.__name__: names - documented(cls) for cls, names in found.items() if names - documented(cls)} == {}


def test_help_does_not_describe_internal_names():
    text = pydoc.render_doc(rb.Trajectory, renderer=pydoc.plaintext)
    assert "of_joint" in text
    assert "model_of_states" not in text


@pytest.mark.parametrize("cls", [rb.Study, rb.Measure, rb.Simulation, rb.Normal])
def test_help_on_a_class_of_a_study_describes_only_its_interface(cls):
    text = pydoc.render_doc(cls, renderer=pydoc.plaintext)
    members = re.findall(r"^ \|  (\w+)(?:\(| =|$)", text.split("Method resolution order")[1], re.MULTILINE)
    assert [name for name in members if name.startswith("_") and name not in {"__init__", "__repr__"}] == []


def test_the_signature_of_a_distribution_shows_the_arguments_of_a_call():
    assert str(inspect.signature(rb.Uniform)) == "(low, high)"
    assert str(inspect.signature(rb.Normal)) == "(mean=0.0, std=<required>)"


def test_the_docstring_of_the_model_names_each_method_under_one_topic():
    topics = re.search(r"The methods by topic.*?:\n\n(.*?)\n\n", rb.Model.__doc__, re.DOTALL)[1]
    methods = [name for name in shown(dir(rb.Model)) if callable(getattr(rb.Model, name))]
    assert sorted(re.findall(r"`(\w+)`", topics)) == sorted(methods)


def test_a_misspelled_name_suggests_a_public_name():
    with pytest.raises(AttributeError, match=r"no attribute 'labell'$"):
        rb.Encoder("elbow").labell  # noqa: B018
