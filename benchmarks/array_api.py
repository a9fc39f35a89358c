"""Examples per CPU second of array-api-tests: of numpy's functions that attention is made of."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

WHERE = "ARRAY_API_TESTS"
"""Environment variable: a checkout of https://github.com/data-apis/array-api-tests with its
submodule. Its requirements.txt says what else it needs.
"""

TESTS = (
    "test_linalg.py::test_matmul",
    "test_operators_and_elementwise_functions.py::test_exp",
    "test_operators_and_elementwise_functions.py::test_multiply",
    "test_operators_and_elementwise_functions.py::test_subtract",
    "test_operators_and_elementwise_functions.py::test_divide",
    "test_searching_functions.py::test_where",
    "test_statistical_functions.py::test_max",
    "test_statistical_functions.py::test_sum",
)
"""What masked attention does with arrays: products, mask, shift, exponential, sum, division."""

EXAMPLES = 400
"""Of each test; the project's default is 100, and elementwise tests take a tenth."""

_CHILD = """
import json, sys, time
sys.path.insert(0, ".")
import pytest
from hypothesis.statistics import collector

class Counter:
    valid = 0
    seconds = 0.0
    failed = 0

    def note(self, statistics):
        for name, phase in statistics.items():
            if name.endswith("-phase"):
                self.valid += sum(c["status"] == "valid" for c in phase["test-cases"])

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_runtest_call(self, item):
        began = time.process_time()
        with collector.with_value(self.note):
            yield
        self.seconds += time.process_time() - began

    def pytest_runtest_logreport(self, report):
        self.failed += report.failed

counter = Counter()
options = ["-q", "-p", "no:cacheprovider", "--disable-deadline", "--derandomize"]
pytest.main([*options, *sys.argv[1:]], plugins=[counter])
print()
print(json.dumps([counter.valid, counter.seconds, counter.failed]))
"""


@dataclass(frozen=True)
class Rate:
    """Examples that ran, the CPU seconds of the tests alone, and how many tests failed."""

    examples: int
    seconds: float
    failed: int

    @property
    def each_second(self) -> float:
        """Examples a CPU second."""
        return self.examples / self.seconds


def measure() -> Rate | str:
    """In a process of its own, whose imports do not count; or why it cannot be measured here."""
    place = os.environ.get(WHERE)
    if not place:
        return f"not measured: {WHERE} is not set"
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, f"--max-examples={EXAMPLES}", *_paths()],
        cwd=Path(place),
        env={**os.environ, "ARRAY_API_TESTS_MODULE": "numpy"},
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        examples, seconds, failed = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        said = (done.stderr or done.stdout).strip().splitlines()
        return f"not measured: {said[-1] if said else 'it said nothing'}"
    if not examples:
        said = [line for line in done.stdout.splitlines()[:-1] if line.strip()]
        return f"not measured: no example ran: {said[-1] if said else 'pytest said nothing'}"
    return Rate(examples, seconds, failed)


def _paths() -> Iterator[str]:
    return (f"array_api_tests/{name}" for name in TESTS)
