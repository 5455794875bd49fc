"""What the README shows, runs."""

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]


def test_the_readmes_python_runs(tmp_path, monkeypatch, capsys):
    """Its blocks one after the other, as one would paste them into a session begun in a checkout."""
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 3
    for name in ("README.md", "examples"):
        (tmp_path / name).symlink_to(REPOSITORY / name)
    monkeypatch.chdir(tmp_path)
    session = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), session)
    said = capsys.readouterr().out
    assert "(10000, 21, 6)" in said
    assert (tmp_path / "results" / "results.zarr").is_dir()
