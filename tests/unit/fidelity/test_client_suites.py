"""The results of the clients' suites: pytest's report, the table of reasons, the page."""

from __future__ import annotations

from pathlib import Path

from tests.fidelity.client_suites.page import Run, page
from tests.fidelity.client_suites.reasons import BRIDGEHEAD, KAFKA, ROWS, Row
from tests.fidelity.client_suites.running import Result, parse_report
from tests.fidelity.client_suites.suites import SUITES
from tests.fidelity.client_suites.verdicts import Judged, judge, stale_rows

REPORT = """<testsuites><testsuite>
<testcase file="a/test_x.py" name="test_good"/>
<testcase file="a/test_x.py" name="test_bad[1]"><failure message="1 != 2">…</failure></testcase>
<testcase file="a/test_x.py" name="test_error"><error message="no fixture"/></testcase>
<testcase file="a/test_x.py" name="test_old"><skipped message="needs 4.0"/></testcase>
<testcase file="a/test_x.py" name="test_good_then_error"/>
<testcase file="a/test_x.py" name="test_good_then_error"><error message="teardown"/></testcase>
</testsuite></testsuites>"""
ROW = Row("suite", "t", (BRIDGEHEAD,), "because")
FAILED = [Result("t", "failed", "1 != 2")]


def test_a_report_has_one_result_for_each_test() -> None:
    assert list(parse_report(REPORT)) == [
        Result("test_x.py::test_good", "passed"),
        Result("test_x.py::test_bad[1]", "failed", "1 != 2"),
        Result("test_x.py::test_error", "failed", "no fixture"),
        Result("test_x.py::test_old", "skipped", "needs 4.0"),
        Result("test_x.py::test_good_then_error", "failed", "teardown"),
    ]


def test_a_failure_needs_a_row_of_its_suite_and_system() -> None:
    (explained,) = judge("suite", BRIDGEHEAD, FAILED, [ROW])
    assert explained == Judged("t", "inapplicable", "because")
    for suite, system in (("suite", KAFKA), ("other", BRIDGEHEAD)):
        (verdict,) = judge(suite, system, FAILED, [ROW])
        assert verdict == Judged("t", "failed", message="1 != 2")
        assert verdict.unexplained


def test_a_test_that_its_suite_skips_is_inapplicable() -> None:
    assert judge("suite", BRIDGEHEAD, [Result("t", "skipped", "needs 4.0")], []) == [
        Judged("t", "inapplicable", "needs 4.0")
    ]


def test_a_row_of_a_test_that_passes_is_not_needed() -> None:
    passed = [Result("t", "passed")]
    assert stale_rows("suite", BRIDGEHEAD, passed, [ROW]) == [ROW]
    assert stale_rows("suite", BRIDGEHEAD, [], [ROW]) == [ROW], "the test no longer exists"
    assert stale_rows("suite", BRIDGEHEAD, FAILED, [ROW]) == []
    assert stale_rows("suite", KAFKA, passed, [ROW]) == []


def test_a_test_that_passed_late_is_on_the_page_with_its_attempts() -> None:
    (late,) = judge("suite", KAFKA, [Result("t", "passed", attempts=2)], [])
    assert late == Judged("t", "passed", "On Kafka 3.9.1 it passed at attempt 2.")
    lines = page([Run(SUITES["aiokafka"], "v1", "0.1", {KAFKA: [late]})]).splitlines()
    assert "| aiokafka | `t` | passed | On Kafka 3.9.1 it passed at attempt 2. |" in lines


def test_the_page_counts_verdicts_and_gives_reasons() -> None:
    judged = {
        BRIDGEHEAD: [Judged("t", "inapplicable", "because"), Judged("u", "passed")],
        KAFKA: [Judged("t", "passed"), Judged("u", "passed")],
    }
    lines = page([Run(SUITES["aiokafka"], "v1", "0.1", judged)]).splitlines()
    assert any(line.endswith("| Bridgehead | 1 | 0 | 1 |") for line in lines)
    assert any(line.endswith("| Kafka 3.9.1 | 2 | 0 | 0 |") for line in lines)
    assert "| aiokafka | `t` | inapplicable | passed | because |" in lines
    assert not any("`u`" in line for line in lines)


def test_every_row_names_a_suite_and_is_on_the_page() -> None:
    text = Path("docs/client-suites.md").read_text()
    for row in ROWS:
        assert row.suite in SUITES
        assert f"| {row.suite} | `{row.test}` |" in text
