"""The code of the documentation runs and prints the output shown, and the names on its pages exist."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import rbchain

REPOSITORY = Path(__file__).parents[1]
PAGES = sorted(page for page in (REPOSITORY / "docs").rglob("*.md") if "```python" in page.read_text(encoding="utf-8"))
SESSION = """
import contextlib, io, pathlib, re, sys, warnings
warnings.filterwarnings("ignore", ".*no body can have the inertia")
page = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
fences = re.findall(r"^```(python|text)\\n(.*?)^```(\\n\\n(?=```text))?", page, re.S | re.M)
session = {}
for (kind, block, shown), (_, follows, _) in zip(fences, [*fences[1:], ("", "", "")]):
    if kind == "python":
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(block, sys.argv[1], "exec"), session)
        if shown:
            assert said.getvalue() == follows, (said.getvalue(), follows)
"""


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_python_of_a_page_runs(page, tmp_path):
    """The blocks of a page run in one session in a checkout, in plain Python to save the time to compile."""
    (tmp_path / "examples").symlink_to(REPOSITORY / "examples")
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", SESSION, page]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(
    "page", [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))], ids=lambda page: page.stem
)
def test_the_public_names_on_a_page_exist(page):
    for name in re.findall(r"(?<![\w.])rb\.(\w+(?:\.\w+)*)", page.read_text(encoding="utf-8")):
        owner = rbchain
        for part in name.split("."):
            owner = getattr(owner, part)


def test_every_page_is_in_the_table_of_contents():
    contents, pages = (REPOSITORY / "docs/index.md").read_text(encoding="utf-8"), [*(REPOSITORY / "docs").rglob("*.md")]
    assert len(pages) > 15
    for page in pages:
        name = str(page.relative_to(REPOSITORY / "docs").with_suffix(""))
        assert name == "index" or re.search(rf"^{name}$", contents, re.MULTILINE), name


@pytest.mark.slow
def test_the_page_on_the_architecture_names_every_package_and_its_diagram_draws_them():
    diagram = runpy.run_path(str(REPOSITORY / "docs/diagram.py"))
    drawn = set(re.findall(r"<text.*?>(.*)</text>", diagram["draw"]()))
    page = (REPOSITORY / "docs/architecture.md").read_text(encoding="utf-8")
    table = re.search(r"## Packages\n(.*?)\n#", page, re.DOTALL)[1]
    named = set(re.findall(r"`([\w.]+)`", "".join(re.findall(r"^\| `.*? \|", table, re.MULTILINE))))
    packages = {path.stem for path in (REPOSITORY / "rbchain").glob("[a-z]*")} - {"core", "py"}
    packages |= {f"core.{path.name}" for path in (REPOSITORY / "rbchain/core").glob("[a-z]*")}
    assert named == packages
    assert drawn | diagram["COMMON"] == packages
    files = re.findall(r"`([\w/]+/[\w/]+\.py)`", page)
    assert len(files) > 10
    assert not [file for file in files if not any((REPOSITORY / top / file).exists() for top in ("", "rbchain"))]


def test_the_page_on_failures_explains_every_status():
    page = (REPOSITORY / "docs/how-to/failures.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == set(rbchain.Status.__members__)


def test_every_test_named_on_the_accuracy_page_exists():
    page = (REPOSITORY / "docs/accuracy.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/.]+)(?:::(\w+))?`", page)
    assert len(named) > 30
    for path, test in named:
        assert (REPOSITORY / path).exists(), path
        assert not test or f"def {test}(" in (REPOSITORY / path).read_text(encoding="utf-8"), test
