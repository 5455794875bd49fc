"""How many random cases each test runs, and how Hypothesis makes them."""

import functools
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, settings

#: Cases of all tests together, unless `--fuzz N` says otherwise.
DEFAULT = 300
#: With fewer cases, some of the endings that a test lists may be missing.
ENOUGH_FOR_ALL_ENDINGS = 1000
SUPPRESSED = [
    HealthCheck.too_slow,  # a case may build a model, simulate it, and run a study
    HealthCheck.data_too_large,  # a case of a file draws its whole text
    HealthCheck.large_base_example,  # the same
    HealthCheck.function_scoped_fixture,  # tmp_path: each case overwrites its files
]
_total = DEFAULT
_endings: set[str] = set()


def set_total(total: int) -> None:
    """Set how many cases all tests run together; tests that are imported later see it."""
    global _total  # noqa: PLW0603 - decorators read it when pytest imports the tests
    _total = total


def ended(how: str) -> None:
    """Record how a case ended."""
    _endings.add(how)


def cases(*, percent: float, ends: tuple[str, ...] = ()) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test for this share of all cases.

    With 1,000 cases in all, fail if none of them ended in one of the ways that `ends` lists.

    Cases are always the same ones (`derandomize`): a larger total adds cases, and a case that failed once fails until
    the code is corrected. A case has no time limit, because a busy machine would fail it.
    """
    limits = settings(
        max_examples=max(1, round(_total * percent / 100)),
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],  # without the phase `explain`, which doubles the time
        print_blob=True,
        suppress_health_check=SUPPRESSED,
    )

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        run = limits(test)

        @functools.wraps(run)
        def run_all(*arguments: Any, **named: Any) -> None:
            _endings.clear()
            run(*arguments, **named)
            if _total >= ENOUGH_FOR_ALL_ENDINGS:
                missing = set(ends) - _endings
                assert not missing, f"no case ended in {sorted(missing)}, so the test checks less than it says"

        return run_all

    return decorate
