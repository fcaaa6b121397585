"""Which mutants tests/kips generates for a statement, and which it leaves out."""

from __future__ import annotations

from pathlib import Path

from tests.kips.changes import condition, returned
from tests.kips.generated import generated
from tests.kips.mutant import Mutant

MODULE = """
def handle(request):
    if request.is_old and LIMIT:
        _log.info("%s is old", request.name, extra=7)
        send(request, f"{request.name} is old")
    return Answer(request.name, LIMIT < 5, topics=[], configs={}, help=__doc__, late="no")
"""
CONDITION, RETURN = condition("is_old").never(), returned("Answer").becomes("None")


def test_each_part_of_the_statements_of_a_row_is_changed_in_turn(tmp_path: Path) -> None:
    """The words of log lines and messages, docstrings and empty values are not changed."""
    (tmp_path / "module.py").write_text(MODULE)
    written = [
        Mutant(rows, "module", "handle", change)
        for rows, change in ((("1", "2"), CONDITION), (("2",), RETURN), (("3",), RETURN))
    ]
    mutants = generated(written, tmp_path)
    assert [(mutant.rows, str(mutant.change)) for mutant in mutants] == [
        (("1", "2"), "condition request.is_old and LIMIT inverted"),
        (("1", "2"), "condition request.is_old and LIMIT is True"),
        (("1", "2"), "condition request.is_old and LIMIT is False"),
        (("1", "2"), "without the operand request.is_old"),
        (("1", "2"), "without the operand LIMIT"),
        (("1", "2"), "without send(request, f'{request.name} is old')"),
        (("1", "2"), "7 becomes 8"),
        (("2", "3"), "request.name is empty"),
        (("2", "3"), "LIMIT < 5 is empty"),
        (("2", "3"), "LIMIT < 5 becomes LIMIT <= 5"),
        (("2", "3"), "5 becomes 6"),
        (("2", "3"), "'no' becomes 'nox'"),
    ]
    assert not any(mutant.needs_every_row for mutant in mutants)
