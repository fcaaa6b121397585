"""The JUnit document of the verdicts is well-formed, whatever names the evidence has."""

from __future__ import annotations

from xml.etree import ElementTree

from judge.verdicts import Verdict, VerdictRow
from pipeline.report.junit import junit


def test_a_character_that_xml_cannot_contain_is_escaped() -> None:
    why = "0:user=a\x01\ud800\ufffe\u00e9 was lost"
    row = VerdictRow(
        property="D1",
        name="kept",
        verdict=Verdict.FAIL,
        judged=1,
        violations=1,
        decides=True,
        why=why,
    )
    suite = ElementTree.fromstring(junit({"r": [row]}).encode())
    failure = suite.find("testsuite/testcase/failure")
    assert failure is not None
    assert failure.get("message") == "0:user=a\\x01\\ud800\\ufffe\u00e9 was lost"
