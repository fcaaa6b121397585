"""Exit codes mean the same in every command. `judge` and `event_log` have copies of them."""

from __future__ import annotations

import judge.__main__ as judge_command
import judge.evidence.__main__ as evidence_command
from bridgehead.exit_codes import MEANINGS, ExitCode
from bridgehead.schema_version import SCHEMA_VERSION
from judge.verdicts import Verdict, exit_code
from tools.generate_reference import command_names, commands_page


def test_every_code_has_a_meaning() -> None:
    assert list(MEANINGS) == list(ExitCode)


def test_judges_use_the_same_numbers() -> None:
    assert exit_code(Verdict.PASS) == ExitCode.OK
    assert exit_code(Verdict.FAIL) == ExitCode.FAILED
    assert exit_code(Verdict.UNKNOWN) == exit_code() == ExitCode.UNDECIDED
    assert evidence_command.CANNOT_RUN == ExitCode.CANNOT_RUN
    assert judge_command.SCHEMA_VERSION == SCHEMA_VERSION


def test_help_shows_flags_without_a_value_and_fits_the_terminal() -> None:
    page = commands_page()
    assert len(list(command_names())) > 20
    assert "<bool>" not in page
    assert " --json " in page
    inside = page.split("```")[1::2]
    assert [line for text in inside for line in text.splitlines() if len(line) > 80] == []
