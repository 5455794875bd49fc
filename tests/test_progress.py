"""Progress messages: bars in terminals and notebooks, log lines elsewhere, and none on request."""

import logging
import os
import pty
import re
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from rbchain.common import progress as module
from rbchain.common.progress import is_quiet, log, progress

from .conftest import HANG_LIMIT

WORK = """
from rbchain.common import progress as module
from rbchain.common.progress import progress
module.SECONDS_BETWEEN_LINES = 3600.0
with progress("Counting [sheep]", total=3, after=0.0) as work:
    for _ in range(3):
        work.advance(note="[b] still awake")
"""


def count_to_three(after):
    with progress("Counting", total=3, after=after) as work:
        for _ in range(3):
            work.advance(note="awake")


def test_work_is_logged_if_there_is_neither_terminal_nor_notebook(caplog, monkeypatch):
    monkeypatch.setattr(module, "SECONDS_BETWEEN_LINES", 3600.0)
    caplog.set_level(logging.INFO, "rbchain")
    count_to_three(after=0.0)
    assert [record.name for record in caplog.records] == ["rbchain"] * 2
    assert re.search(r"Counting: 3/3, awake, \d+ s", caplog.text)


def test_a_long_work_is_logged_every_few_seconds(caplog, monkeypatch):
    monkeypatch.setattr(module, "SECONDS_BETWEEN_LINES", 0.01)
    caplog.set_level(logging.INFO, "rbchain")
    with progress("Waiting", after=0.01):
        end = time.monotonic() + HANG_LIMIT
        while len(caplog.records) < 5 and time.monotonic() < end:
            time.sleep(0.01)
    assert len(caplog.records) >= 5


def test_an_estimated_total_gives_an_expected_time_until_the_work_ends(caplog, monkeypatch):
    """After 30 of 120 units in 5 s, all of them take 20 s."""
    clock = iter([0.0, *[5.0] * 5])
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(module, "SECONDS_BETWEEN_LINES", 3600.0)
    caplog.set_level(logging.INFO, "rbchain")
    with progress("Compiling", total=120, after=0.0, is_estimate=True) as work:
        work.advance(30)
        assert work.text == "Compiling: 5 s of about 20 s"
        work.advance(100)
        assert work.text == "Compiling: 5 s"
    assert caplog.records[-1].getMessage() == "Compiling: 5 s"


def test_the_time_that_is_left_does_not_count_the_wait_for_the_first_units(monkeypatch):
    """The first 10 of 100 units come after a compilation of 30 s, and the next 20 take 4 s: 70 take 14 s more."""
    clock = iter([0.0, *[30.0] * 2, *[34.0] * 2, *[48.0] * 2])
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    work = module.Progress("Study", 100)
    work.advance(10)
    assert (work.text, work.rate) == ("Study: 10/100, 30 s", 0.0)
    work.advance(20)
    assert (work.text, work.rate) == ("Study: 30/100, 34 s, about 14 s left", 5.0)
    work.advance(70)
    assert work.text == "Study: 100/100, 48 s"


def test_only_the_work_that_began_last_logs_lines(caplog, monkeypatch):
    monkeypatch.setattr(module, "SECONDS_BETWEEN_LINES", 0.01)
    caplog.set_level(logging.INFO, "rbchain")
    with progress("Study", after=0.0):
        time.sleep(0.05)
        with progress("Compiling", after=0.0):
            while "Compiling: " not in caplog.text:
                time.sleep(0.01)
            begun = len(caplog.records)
            time.sleep(0.1)
            lines = [record.getMessage() for record in caplog.records[begun:]]
    assert not any(line.startswith("Study") for line in lines)
    assert caplog.records[-1].getMessage().startswith("Study: ")


def test_short_work_is_silent(caplog):
    caplog.set_level(logging.INFO, "rbchain")
    count_to_three(after=3600.0)
    assert not caplog.records


@pytest.mark.parametrize(("setting", "quiet"), [("1", True), ("yes", True), ("0", False), ("", False)])
def test_quiet_turns_messages_off(caplog, monkeypatch, setting, quiet):
    monkeypatch.setenv("RBCHAIN_QUIET", setting)
    caplog.set_level(logging.INFO, "rbchain")
    count_to_three(after=0.0)
    log("compiling %s", "forward_dynamics")
    assert is_quiet() == quiet
    assert (not caplog.records) == quiet


def test_an_error_in_the_work_passes_through(caplog):
    caplog.set_level(logging.INFO, "rbchain")
    with pytest.raises(ZeroDivisionError), progress("Dividing", total=2, after=0.0):
        1 / 0  # noqa: B018
    assert "Dividing: 0/2" in caplog.text


@pytest.mark.parametrize(
    ("configuration", "lines"),
    [
        ("pass", 2),
        ("logging.basicConfig(level=logging.INFO)", 2),
        ("logging.basicConfig()", 0),
        ("logging.getLogger('rbchain').setLevel(logging.ERROR)", 0),
    ],
)
def test_a_program_decides_by_logging_what_it_shows(configuration, lines):
    run = subprocess.run(
        [sys.executable, "-c", f"import logging\n{configuration}\n{WORK}"], capture_output=True, text=True, check=True
    )
    assert run.stdout == ""
    assert run.stderr.count("Counting [sheep]") == lines
    assert ("3/3, [b] still awake" in run.stderr) == (lines > 0)


@pytest.mark.parametrize("quiet", [False, True])
def test_a_terminal_shows_a_bar(quiet):
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120"} | ({"RBCHAIN_QUIET": "1"} if quiet else {})
    nested = WORK.replace("range(3):", "range(3):\n        with progress('Inner', after=0.0): pass")
    with subprocess.Popen([sys.executable, "-c", nested], stderr=theirs, stdout=theirs, env=environment) as process:
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 4096):
                shown += piece
        except OSError:  # Linux reports the end of a terminal as an error
            pass
        assert process.wait() == 0
    os.close(ours)
    if quiet:
        assert shown == b""
        return
    text = shown.decode()
    assert "━" in text
    assert "Counting [sheep]" in text
    assert "3/3, [b] still awake" in text
    assert "Inner" in text
