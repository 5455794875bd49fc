"""The code of the README runs and prints the output shown, and its links exist."""

import re
import warnings
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
TEXT = (REPOSITORY / "README.md").read_text(encoding="utf-8")


def test_the_python_of_the_readme_prints_the_output_shown(tmp_path, monkeypatch, capsys):
    """It runs as if pasted into a session in a checkout."""
    (block,) = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    (printed,) = re.findall(r"^```text\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    (tmp_path / "examples").symlink_to(REPOSITORY / "examples")
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*no body can have the inertia")
        exec(compile(block, "README.md", "exec"), {})
    assert capsys.readouterr().out == printed


def test_the_links_of_the_readme_exist():
    links = [link for link in re.findall(r"\]\(([^)#]+)", TEXT) if "://" not in link]
    assert links
    assert not [link for link in links if not (REPOSITORY / link).exists()]
