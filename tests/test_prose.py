"""The prose check of CI reports each kind of fault with its file and line."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "prose.py"
LONG = "This sentence has " + "one more word and " * 9 + "ends."  # 40 words
FIXED = '''"""Simulate a serial chain: "Optimisation of arms" (1999). Promises arise otherwise."""

def reach(q):
    """Compute a pose.

    >>> "a doctest may have any words, such as chains and whatever"
    """
    if q is None:
        raise ValueError("q is None; expected an array")  # a comment may say chain
    return q
'''
FAULTS = {
    "a long sentence of a docstring": (f'"""Summary.\n\n{LONG}\n"""\n', 3, "sentence of 40 words"),
    "a long sentence of a comment": (f"x = 1\n# Short.\n# {LONG[:35]}\n#{LONG[35:]}\n", 3, "sentence of 40 words"),
    "a long message": (f'raise ValueError(\n    f"{{3}} {LONG}")\n', 2, "sentence of 41 words"),
    "a word of a docstring": ('"""Summary.\n\nEach chain has masses.\n"""\n', 3, "avoid 'chain'; use: sample"),
    "a word of a message": ('raise ValueError(f"{3} of the chains failed")\n', 1, "avoid 'chains'; use: sample"),
    "a docstring without a summary": (
        'def f():\n    """\n    Compute.\n    """\n',
        2,
        "summary of one line",
    ),
    "the spelling of a comment": ("x = 1\n# of neighbouring steps\n", 2, "'neighbouring' is British"),
    "the spelling of a name": ("class LinearisedRate:\n    pass\n", 1, "'Linearised' in LinearisedRate is British"),
    "a summary of two lines": ('def f():\n    """Compute\n    a pose.\n    """\n', 2, "summary of one line"),
}


def check(path):
    return subprocess.run([sys.executable, SCRIPT, path], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_python_is_reported(fault, tmp_path):
    source, line, text = FAULTS[fault]
    (tmp_path / "module.py").write_text(source, encoding="utf-8")
    found = check(tmp_path)
    assert found.returncode == 1
    assert found.stdout.startswith(f"{tmp_path / 'module.py'}:{line}: ")
    assert text in found.stdout
    assert found.stdout.endswith("\n1 faults\n")


def test_faults_of_a_page_are_reported_and_its_code_is_not(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        f"# Title\n\nUse `chains` in `code`.\n\n```python\n# {LONG} chains\n```\n\n* A. {LONG}\n\n| worlds |\n",
        encoding="utf-8",
    )
    assert check(page).stdout.splitlines() == [
        f"{page}:9: sentence of 40 words (This sentence has one more word ...); at most 35",
        f"{page}:11: avoid 'worlds'; use: sample",
        "2 faults",
    ]


def test_text_without_faults_passes(tmp_path):
    (tmp_path / "module.py").write_text(FIXED, encoding="utf-8")
    found = check(tmp_path)
    assert (found.returncode, found.stdout) == (0, "no faults\n")
