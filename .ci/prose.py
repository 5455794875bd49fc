"""Check the prose of Python and Markdown files: sentence length, words, spelling, first lines of docstrings.

Usage:  python .ci/prose.py [FILE_OR_FOLDER ...]      (all tracked files if none is given)

The script prints one line `file:line: fault` per fault and exits with 1 if there is any. It reads docstrings,
comments, messages (string literals outside tests) and Markdown without code. Comments may use any word. The spelling
is American, also in the names of Python files.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from pathlib import Path

MAX_WORDS = 35

#: Words that public texts do not use, and the words for them (docs/glossary.md). Code in backticks is not checked.
REPLACEMENTS = {
    r"\bchains?\b": "sample, model or mechanism",
    r"\bworlds\b|\b(each|every|per) world\b": "sample",
    r"\b(chain|sample|state|lane)s? alone\b|\blanes or alone\b|\bcompany\b": "one lane, single state",
    r"\b(shown? (to )?(its|the|a|their) parent|shown inertia)\b": "child contribution, articulated inertia",
    r"\bmotors? (give|gave|gives|given)\b|\bwhat the motors?\b": "actuator torque",
    r"\b(joints?|bodies|body) (do|does) by (itself|themselves)\b": "passive joint force",
    r"\b(a|an|the|external|rigid|its|their|each|every) loads?\b": "wrench or payload",
    r"\bpush(es|ed|ing)?\b": "wrench, force",
    r"\b(attempted|rolled) steps?\b|\bstep attempts?\b": "accepted step, rejected step",
    r"\bhow (a|the|each|every|it|they) ?\w* ends?\b": "status",
    r"\breach of\b|\bthe reach\b": "effect",
    r"\bthrough and through\b|\broundings\b": "round-off",
    r"\bwhat acts\b|\bwhatever\b": "a noun",
    r"(?<!there )\b(is|are) no (?!longer|more|less|later|greater|smaller|larger)\w+": "is not a, are not",
    r"\bthere is none to\b|\bas it should be\b": "a plain statement",
}
#: Words that texts for users do not use either. Tests and benchmarks may use them.
REPLACEMENTS_FOR_USERS = {
    r"\bdrawn numbers?\b": "random input",
    r"\bunit matri(x|ces)\b": "identity matrix",
    r"\b(derivatives?|sensitivit(y|ies)) by (the|its|their|initial|positions?|velocit\w+|parameters?|qd?d?)\b": (
        "with respect to"
    ),
    r"\bexpected (one of them\b|(?-i:None)\b(?! or|,))": "what to do: use one of the two, remove X",
    r"\b(is|are) refused\b|\brbchain refuses\b": "is not supported, raises an error",
    r"\bin (positive|negative) direction\b": "in the positive direction",
    r"\b(left|leaves?|leaving) out\b": "omit, ignore",
    r"\b(message|warning) names\b": "contains, lists",
    r"\b(that|those) of\b": "the noun again",
    r"\b(error|message|exception)s? (that )?gives?\b": "states, contains",
    r"(?<!of )(?<!of a )(?<!of an )(?<!of the )\b(matrices|files?|joints?|moments?|designs?|sequences?|declarations?|"
    r"arrays?|shapes?|features?|units|text) raises? an?\b": "the function that raises the error as the subject",
    r"\bnor (does|do|is|are)\b": "also does not",
    r"\bcounts? as no\b": "does not count as",
    r"\bthe extra Q_": "its name before the word: the `view` extra",
    r"\b(whose|their|one) clocks?\b": "samples at different times; period, phase and delay of a controller",
    r"\b(less|more|smaller|larger|lower|the) scatter\b": "spread, coefficient of variation",
}
#: British spellings. Titles of publications, between quotation marks or asterisks, keep theirs.
BRITISH = re.compile(
    r"\b[a-z]{2,}(al|an|ar|er|et|etr|ic|il|im|ogn|on|or|random)is(e[drs]?|ers|ing|ably|ations?)\b"
    r"|\b(analys(e[dr]?|ing)|aluminium|artefacts?|fulfil|grey|judgement|(mis)?spelt|learnt|whilst|(de|of)fence|licence)\b"
    r"|\b(behaviou?r|colou?r|favou?r|honou?r|neighbou?r|vapou?r)(?<=our)(s|ed|ing|able)?\b"
    r"|\b((kilo|centi|milli)?met|cent|fib|lit)re[ds]?\b"
    r"|\b(cancel|channel|label|level|model|signal|travel)l(ed|ing|ers?)\b",
    re.I,
)
TITLE = re.compile(r'"[A-Z][^"]*"|\*[A-Z][^*]*\*')
#: Names of materials that users may write in British spelling.
BRITISH_NAMES = ("carbon fibre", "glass fibre")
#: Correct uses of these words. A match inside one of these phrases is no fault.
ALLOWED = [
    r"\b(serial|kinematic|open|closed|planar|six-link) chains?\b",
    r"\bchains? of (\d+|n|X|equal|bodies|links|revolute|joints|rigid)\b",
]
ABBREVIATIONS = re.compile(r"\b(e\.g|i\.e|cf|eqs?|fig|vol|chap|sec|pp?|al|vs|no|eds?|approx|ch)\.$", re.I)
SENTENCE_END = re.compile(r"[.!?][\"')\]*_]*\s+(?=[\"'(\[*_]*[A-Z0-9])")
CODE = re.compile(r"(\{[\w:]+\}|:[\w:]+:)?(``.+?``|`[^`]+`)|\$[^$]+\$|https?://\S+", re.S)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
FENCES = {"```": "```", "~~~": "~~~", "$$": "$$", "<!--": "-->"}
RULE = re.compile(r"[-=]{3,}$")
LIST_ITEM = re.compile(r"\s*([*-]|\d+\.|:)\s+")
#: A list item, a heading, a parameter of numpydoc (`name : type`) or a row of columns (three spaces inside).
NEW_PARAGRAPH = re.compile(LIST_ITEM.pattern + r"|\s*#+\s|\s*[\w*][\w*, .]* : \S|\s*\S.*\S {3,}\S")


def paragraphs(lines, first_line):
    """Split text into paragraphs [(line number, line), ...], without code, doctests and displayed equations."""
    found, indentation = [[]], None
    fence = literal = doctest = None
    for number, line in enumerate(lines, first_line):
        text, depth = line.strip(), len(line) - len(line.lstrip())
        if fence:
            fence = None if text.endswith(fence) else fence
            continue
        doctest = text.startswith(">>>") or (doctest and text)
        if literal is not None and text and depth <= literal:
            literal = None
        after_empty_line = not found[-1]
        if literal is None and after_empty_line and indentation is not None and depth >= indentation + 4:
            literal = indentation
        mark = next((mark for mark in FENCES if text.startswith(mark)), None)
        if mark and not (text.endswith(FENCES[mark]) and text != mark):
            fence = FENCES[mark]
        if doctest or literal is not None or mark or not text or RULE.match(text):
            found.append([])
            continue
        if text.startswith("|"):
            found += [[(number, cell)] for cell in text.strip("|").split("|")] + [[]]
            continue
        in_item = found[-1] and LIST_ITEM.match(found[-1][0][1])
        if NEW_PARAGRAPH.match(line) or (depth != indentation and not in_item):
            found.append([])
        found[-1].append((number, line))
        indentation = depth
    return [paragraph for paragraph in found if paragraph]


def python_texts(path, source):
    """Yield (kind, lines, first line number) of each docstring, comment and message."""
    tree, docstrings = ast.parse(source), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            value = node.body[0].value
            docstrings.add(value)
            lines = value.value.splitlines()
            indentation = len(lines[-1]) - len(lines[-1].lstrip()) if len(lines) > 1 else 0
            yield "docstring", [" " * indentation + lines[0], *lines[1:]], value.lineno
    if "tests" not in path.parts:
        inside = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in ast.walk(tree):
            text = ""
            if isinstance(node, ast.JoinedStr):
                text = "".join(part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings | inside:
                text = node.value
            if "\\" in text:  # a regular expression
                continue
            if " " in text.strip() and "\n" not in text.strip() and not text.lstrip().startswith("<"):
                yield "message", [text], node.lineno
    comments, following = [], -1
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            (number, column), text = token.start, token.string.lstrip("#:!").split("# noqa")[0]
            if number != following or not comments or token.line[:column].strip():
                comments.append((number, []))
            comments[-1][1].append(text)
            following = number + 1
    yield from (("comment", lines, number) for number, lines in comments)


def sentences(paragraph):
    """Yield (line number, sentence) of a paragraph; code, equations and addresses count as one word each."""
    starts, text = [], ""
    for number, line in paragraph:
        starts.append((len(text), number))
        text += line.strip() + " "
    blank = CODE.sub(lambda match: "Q" + "_" * (len(match[0]) - 1), text)
    for _ in range(2):  # a link may contain a picture
        blank = LINK.sub(lambda match: match[1].rjust(len(match[0])), blank)
    begin = 0
    for end in [*(match.end() for match in SENTENCE_END.finditer(blank)), len(blank)]:
        if end < len(blank) and ABBREVIATIONS.search(blank[begin:end].strip()):
            continue
        line = [number for start, number in starts if start <= begin][-1]
        yield line, blank[begin:end]
        begin = end


def faults(path):
    """Yield (line number, fault) of one file."""
    source = path.read_text(encoding="utf-8")
    python = path.suffix == ".py"
    is_for_users = not {"tests", "benchmarks"} & set(path.parts)
    replacements = REPLACEMENTS | REPLACEMENTS_FOR_USERS if is_for_users else REPLACEMENTS
    if python:
        yield from british_names(source)
    texts = python_texts(path, source) if python else [("page", source.splitlines(), 1)]
    for kind, lines, first_line in texts:
        if kind == "docstring" and (not lines[0].strip() or (len(lines) > 1 and lines[1].strip())):
            yield first_line, "the docstring does not start with a summary of one line, followed by an empty line"
        for paragraph in paragraphs(lines, first_line):
            for number, sentence in sentences(paragraph):
                words = [word for word in sentence.split() if re.search(r"[A-Za-z0-9]", word)]
                if len(words) > MAX_WORDS:
                    yield number, f"sentence of {len(words)} words ({' '.join(words[:6])} ...); at most {MAX_WORDS}"
                for match in BRITISH.finditer(TITLE.sub("", sentence)):
                    if sentence.strip() not in BRITISH_NAMES:
                        yield number, f"'{match[0]}' is British; use the American spelling"
                if kind == "comment":
                    continue
                allowed = [match.span() for phrase in ALLOWED for match in re.finditer(phrase, sentence, re.I)]
                for pattern, replacement in replacements.items():
                    for match in re.finditer(pattern, sentence, re.I):
                        if not any(start <= match.start() and match.end() <= end for start, end in allowed):
                            yield number, f"avoid '{match[0]}'; use: {replacement}"


def british_names(source):
    """Yield (line number, fault) of each name in a Python program."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME:
            words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", token.string).replace("_", " ")
            if match := BRITISH.search(words):
                yield token.start[0], f"'{match[0]}' in {token.string} is British; use the American spelling"


def is_skipped(path):
    """Return whether a file belongs to a build or to a hidden folder such as .venv; the scripts of .ci do not."""
    return any(part == "_build" or (part.startswith(".") and part not in ("..", ".ci")) for part in path.parts)


def main(arguments):
    names = arguments or subprocess.check_output(["git", "ls-files"], text=True).splitlines()
    files = []
    for path in map(Path, names):
        files += sorted(path.rglob("*")) if path.is_dir() else [path]
    found = [
        f"{path}:{number}: {fault}"
        for path in files
        if path.suffix in (".py", ".md") and not is_skipped(path)
        for number, fault in sorted(faults(path))
    ]
    print("\n".join([*found, f"{len(found)} faults" if found else "no faults"]))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
