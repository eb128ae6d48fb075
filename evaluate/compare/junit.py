"""The verdicts on conditions as a JUnit file, which CI systems show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from langshift.evaluate.compare.compare_gate import Verdict
from langshift.whole import whole


def write(path: Path, suite: str, verdicts: Sequence[Verdict]) -> None:
    """Write one test case for each condition; the file appears whole or not at all.

    Args:
        path: the file.
        suite: names what was compared.
        verdicts: what became of each condition.
    """
    from junitparser import Failure, JUnitXml, TestCase, TestSuite

    made = TestSuite(suite)
    for verdict in verdicts:
        case = TestCase(verdict.condition.text, classname="langshift.evaluate.compare")
        if verdict.failed:
            failure = Failure(verdict.says, "fail-if")
            failure.text = verdict.says
            case.result = [failure]
        else:
            case.system_out = verdict.says
        made.add_testcase(case)
    document = JUnitXml("langshift evaluate compare")
    document.add_testsuite(made)
    with whole(path) as partial:
        document.write(str(partial))
