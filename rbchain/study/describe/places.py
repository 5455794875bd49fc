"""Error messages that name the place in a study's description."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pydantic import ValidationError

from ...common.misspelled import did_you_mean
from ...common.real_arrays import excerpt
from ...errors import RbchainError, StudyError

#: Expected values, for the types of pydantic's errors whose own text does not suit a TOML file.
EXPECTED = {
    **dict.fromkeys(
        ("model_type", "model_attributes_type", "dict_type", "is_instance_of"), "a table of keys and values"
    ),
    **dict.fromkeys(("tuple_type", "list_type"), "a list"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    "string_type": "a string",
    "path_type": "a file name",
    "too_short": "at least one name",
}
BOUNDS = ("greater_than", "greater_than_equal", "less_than", "less_than_equal")

#: Parts of a place in pydantic's errors that name the tried type and not a key of the description.
TYPES_TRIED = {
    *(
        "normal",
        "truncated_normal",
        "log_normal",
        "uniform",
        "triangular",
        "weibull",
        "gumbel",
        "discrete",
        "multivariate_normal",
        "scipy",
    ),
    *("random", "latin_hypercube", "sobol", "factorial", "table", "array"),
    *("given", "ModelSource", "float", "str"),
}


@contextmanager
def errors_at(place: str) -> Iterator[None]:
    """Turn errors into a StudyError that begins with the place in the description."""
    try:
        yield
    except ValidationError as error:
        raise StudyError(f"{place}: {message_of(error)}") from None
    except (RbchainError, ValueError, TypeError) as error:
        raise StudyError(f"{place}: {error}") from None


def message_of(error: ValidationError) -> str:
    """Return all problems of a validation: each with its place, what was found and what is expected."""
    problems = error.errors()
    # a table in the place of a Model is valid; report the problems inside it, if there are any
    problems = [p for p in problems if p["type"] != "is_instance_of"] or problems
    lines: dict[str, list[str]] = {}
    for problem in problems:
        location = problem["loc"] + (("type",) if problem["type"] == "union_tag_not_found" else ())
        if problem["type"] == "missing" and isinstance(location[-1], int):  # of a list that is too short
            location = location[:-1]
        is_path = location[:1] == ("vary",) and len(location) > 1
        parts = [f'.vary."{location[1]}"'] if is_path else []
        for x in location[2 * is_path :]:
            parts += [] if _is_type(x) else [f"[{x}]" if isinstance(x, int) else f".{x}"]
        place = "".join(parts).lstrip(".")
        key, text = place.rpartition(".")[2], _text_of(problem)
        if text.startswith("expected "):  # several, if the value may have one of several types
            found = f"{place or 'the study'} is {excerpt(problem['input'], longest=80)}; expected "
            lines.setdefault(found, []).append(text.removeprefix("expected "))
        elif key and text.startswith((f"{key} ", f"{key}.")):
            lines[place + text.removeprefix(key)] = []
        elif isinstance(problem["input"], Mapping) and text.partition(" ")[0] in problem["input"]:
            lines[f"{place}.{text}".lstrip(".")] = []
        else:
            lines[f"{place}: {text}" if place else text] = []
    return "; ".join(found + " or ".join(dict.fromkeys(expected)) for found, expected in lines.items())


def _text_of(problem: Mapping[str, Any]) -> str:
    """Return the text of one problem, without its place."""
    kind, context = problem["type"], problem.get("ctx", {})
    last, value = problem["loc"][-1] if problem["loc"] else "", problem["input"]
    if kind == "missing" and isinstance(last, int):
        return f"expected more than {len(value)} values"
    if kind == "missing":
        return f"{last} is missing; expected a value for this key"
    if kind == "union_tag_not_found":
        if isinstance(value, Mapping) and "kind" in value:
            return f"the key 'kind' is now called 'type'; found kind = {excerpt(value['kind'], longest=80)}"
        return "type is missing; expected a value for this key"
    if kind == "union_tag_invalid":
        known = context["expected_tags"].removesuffix(", 'given'")
        return f"type is {context['tag']!r}; expected one of {known}{_hint(context['tag'], known)}"
    if kind == "tuple_type" and isinstance(value, Mapping):
        return f"expected a list of tables; write [[{last}]] in a TOML file"
    if kind == "too_long":
        return f"expected at most {context['max_length']} values"
    if kind in EXPECTED:
        without_unit = ", without quotes or a unit" if "number" in EXPECTED[kind] and isinstance(value, str) else ""
        return f"expected {EXPECTED[kind]}{without_unit}"
    text = problem["msg"].removeprefix("Value error, ").replace("Input should be ", "expected ", 1)
    if kind == "literal_error":
        return text + _hint(value, context["expected"])
    return text.replace("expected ", "expected a number ", 1) if kind in BOUNDS else text


def _hint(value: Any, quoted: str) -> str:
    """Suggest the word that is most similar to a value, among words in quotation marks."""
    return did_you_mean(value, re.findall(r"'([^']*)'", quoted)) if isinstance(value, str) else ""


def _is_type(part: str | int) -> bool:
    return isinstance(part, str) and (part in TYPES_TRIED or "[" in part)
