"""Run the tests marked `plain_python` in processes of their own, in which Numba compiles nothing.

Numba reads NUMBA_DISABLE_JIT when it is imported, so one process cannot run both compiled and plain tests. In a process
that compiles, each marked test is replaced by a `RemoteTest`. The first of a file runs all selected tests of this file
in a child process, and each of them then reports its own result. A test without a result fails.
"""

import gc
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numba
import pytest

MARKER = "plain_python"
OPTION = "--plain-python-results"
DISABLED = bool(numba.config.DISABLE_JIT)
# The options of pyproject.toml that concern the tests. The plugins of the others take longer to load than a short file.
CHILD_OPTIONS = "--strict-markers --doctest-modules --doctest-continue-on-failure"


def is_plain(item):
    return item.get_closest_marker(MARKER) is not None


class RemoteTest(pytest.Item):
    """A test whose result comes from the child process of its file."""

    @classmethod
    def replacing(cls, item):
        remote = cls.from_parent(item.parent, name=item.name)
        remote.own_markers = item.own_markers
        remote.keywords.update(item.keywords)
        remote.place = item.reportinfo()
        assert remote.nodeid == item.nodeid
        return remote

    def reportinfo(self):
        return self.place

    def setup(self):
        results = self.config.stash[RESULTS]
        if self.nodeid not in results:
            tests = [other for other in self.session.items if isinstance(other, RemoteTest) and other.path == self.path]
            results.update(run_in_child(self.config, [test.nodeid for test in tests]))

    def runtest(self):
        """The phase is the child's: see `pytest_runtest_makereport`."""


RESULTS = pytest.StashKey[dict[str, dict[str, pytest.TestReport]]]()
SERVER = pytest.StashKey["Server"]()


class Server:
    """A process in which Numba compiles nothing. It runs pytest in forks, which need not import the packages again."""

    def __init__(self, config):
        command = [sys.executable, "-m", "tests.plain_python"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        self.process = subprocess.Popen(command, env=environment, cwd=config.rootpath, **pipes)

    def run(self, arguments, output):
        """Run pytest with these arguments, write what it prints to a file, and return its exit status."""
        self.process.stdin.write(json.dumps([arguments, str(output)]) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def stop(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def serve():
    """Answer the requests of a `Server`, one in each line of the input."""
    import_what_most_tests_need()
    for request in sys.stdin:
        arguments, output = json.loads(request)
        child = os.fork()
        if child == 0:
            file = os.open(output, os.O_WRONLY | os.O_CREAT)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(file, 1)
            os.dup2(file, 2)
            status = pytest.main(arguments)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)  # does not free each object, which takes as long as a short file
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def import_what_most_tests_need():
    """Import the packages, and keep the garbage collector of each fork from examining them."""
    import hypothesis  # noqa: F401
    import scipy.integrate  # noqa: F401
    import zarr  # noqa: F401

    import rbchain as rb

    from .oracles import peers  # noqa: F401

    chain = rb.Model.serial_chain(1)
    chain.simulate([[0.0]], [[0.0]], 0.01, save_at=2)
    rb.Study(model=chain, samples=1, simulate={"duration": 0.01}).run()  # imports the packages of results
    gc.collect()
    gc.freeze()


def run_in_child(config, nodeids):
    """Return {node id: {phase: report}} of these tests, computed without a compiler."""
    with tempfile.TemporaryDirectory() as folder:
        selected, results, output = (Path(folder, name) for name in ("selected", "results", "output"))
        selected.write_text("\n".join(nodeids), encoding="utf-8")
        arguments = ["-q", "-o", f"addopts={CHILD_OPTIONS}", f"--fuzz={config.getoption('--fuzz')}"]
        if not any(Path(nodeid).parts[0] == "tests" for nodeid in nodeids):
            arguments += ["-p", "tests.conftest"]  # pytest loads it only for tests in that folder
        arguments += [f"{OPTION}={results}", f"@{selected}"]
        if SERVER not in config.stash:
            config.stash[SERVER] = Server(config)
            config.add_cleanup(config.stash[SERVER].stop)
        status = config.stash[SERVER].run(arguments, output)
        printed = output.read_text(encoding="utf-8", errors="replace")
        lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    found = {nodeid: {} for nodeid in nodeids}
    for line in lines:
        report = config.hook.pytest_report_from_serializable(config=config, data=json.loads(line))
        found[report.nodeid][report.when] = report
    missing = [nodeid for nodeid, reports in found.items() if "teardown" not in reports]
    if missing:
        failure = f"the process without a compiler did not run this test; its status is {status}:\n{printed[-10000:]}"
        found |= dict.fromkeys(missing, failure)
    return found


class Parent:
    """Hooks of a process that compiles."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        config.stash[RESULTS] = {}
        items[:] = [RemoteTest.replacing(item) if is_plain(item) else item for item in items]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item, call):
        if not isinstance(item, RemoteTest) or call.excinfo is not None:
            return None
        reports = item.config.stash[RESULTS][item.nodeid]
        if isinstance(reports, str):
            call = pytest.CallInfo.from_call(lambda: pytest.fail(reports, pytrace=False), call.when)
            return pytest.TestReport.from_item_and_call(item, call) if call.when == "setup" else None
        return reports[call.when]


class Child:
    """Hooks of a process that compiles nothing and writes its results to a file."""

    def __init__(self, config, path):
        if not DISABLED:
            raise pytest.UsageError(f"{OPTION} needs NUMBA_DISABLE_JIT=1")
        self.config, self.path = config, path

    def pytest_collection_modifyitems(self, items):
        unmarked = [item.nodeid for item in items if not is_plain(item)]
        assert not unmarked, f"not marked {MARKER}: {unmarked}"

    def pytest_runtest_logreport(self, report):
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        with open(self.path, "a", encoding="utf-8") as results:
            results.write(json.dumps(data, default=str) + "\n")


class Uncompiled:
    """Hooks of a process in which NUMBA_DISABLE_JIT was set by hand: all tests run there, and the end says so."""

    def __init__(self):
        self.compiled = 0

    @pytest.hookimpl(trylast=True)  # when tests were deselected
    def pytest_collection_modifyitems(self, items):
        self.compiled = sum(not is_plain(item) for item in items)

    def pytest_terminal_summary(self, terminalreporter):
        if self.compiled:
            words = f"NUMBA_DISABLE_JIT is set: {self.compiled} tests of compiled code ran in plain Python"
            terminalreporter.write_line(words, yellow=True)


def configure(config):
    """Register the hooks of this kind of process."""
    if DISABLED:
        # NumPy's numbers warn where a result is not finite; compiled ones do not.
        config.addinivalue_line("filterwarnings", "default::RuntimeWarning")
    path = config.getoption(OPTION)
    plugin = Child(config, path) if path else Uncompiled() if DISABLED else Parent()
    config.pluginmanager.register(plugin, "plain Python tests")


if __name__ == "__main__":
    serve()
