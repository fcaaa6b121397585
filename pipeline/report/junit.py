"""Verdicts as a JUnit document, for continuous integration."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final
from xml.etree import ElementTree

from judge.verdicts import VerdictRow

_FAILED = ("FAIL", "HANG")
# Characters that XML 1.0 does not allow, even escaped. Names in evidence may contain them.
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _text(sentence: str) -> str:
    return _NOT_XML.sub(lambda match: match[0].encode("unicode_escape").decode(), sentence)


def junit(verdicts: Mapping[str, Sequence[VerdictRow]]) -> str:
    """Return a document with a suite for each run and a case for each property.

    A property that does not count for the run's verdict is skipped. An undecided property is an
    error, not a failure.
    """
    root = ElementTree.Element("testsuites", name="bridgehead")
    for run, rows in verdicts.items():
        suite = ElementTree.SubElement(root, "testsuite", name=run, tests=str(len(rows)))
        for row in rows:
            case = ElementTree.SubElement(
                suite, "testcase", classname=f"bridgehead.{run}", name=f"{row.property} {row.name}"
            )
            if not row.decides:
                ElementTree.SubElement(case, "skipped", message=_text(row.why))
            elif row.verdict in _FAILED:
                ElementTree.SubElement(case, "failure", message=_text(row.why), type=row.verdict)
            elif row.verdict != "PASS":
                ElementTree.SubElement(case, "error", message=_text(row.why), type=row.verdict)
        suite.set("failures", str(len(suite.findall("testcase/failure"))))
        suite.set("errors", str(len(suite.findall("testcase/error"))))
        suite.set("skipped", str(len(suite.findall("testcase/skipped"))))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"
