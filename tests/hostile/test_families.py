"""The families that need a minute at most; `make attack` runs all of them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.hostile.__main__ import FRAMES, run_family
from tests.hostile.families import FAMILIES
from tests.hostile.family import Family, Report

LASTING = ("ensembles", "hanging policies", "memory")
QUICK = ("evidence", "prepared folders", "damaged logs", "other users")


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", QUICK)
def test_a_family_has_no_finding(name: str) -> None:
    (family,) = (family for family in FAMILIES if family.name == name)
    report = Report()
    # Not tmp_path: other users, as which a family attacks, cannot enter its parent.
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        family.attack(Path(folder), report)
    assert report.findings == []
    assert report.tries or report.figures


@pytest.mark.long
@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", LASTING)
def test_a_lasting_family_has_no_finding(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.hostile.memory.MINUTES", 1.5)
    test_a_family_has_no_finding(name)


def test_no_family_is_listed_twice() -> None:
    names = [family.name for family in FAMILIES]
    assert len(names) == len(set(names))
    assert FRAMES not in names


def test_a_family_that_fails_or_finds_something_is_a_finding(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def crash(_: Path, report: Report) -> None:
        report.expect(True, "")
        report.expect(False, "a file was \x1b[31mchanged")
        report.figures.append("two files")
        raise RuntimeError("no cluster")

    assert run_family(Family("folders", crash)) == 2
    shown = capsys.readouterr().out
    assert "2 findings" in shown
    assert "the attack raised RuntimeError: no cluster" in shown
    assert "two files" in shown
    assert "\x1b" not in shown
