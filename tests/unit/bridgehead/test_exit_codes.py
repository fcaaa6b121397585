"""Exit codes mean the same in every command. `judge` and `event_log` have copies of them."""

from __future__ import annotations

import judge.__main__ as judge_command
from bridgehead.exit_codes import MEANINGS, ExitCode
from bridgehead.schema_version import SCHEMA_VERSION
from judge import exit_codes as judge_codes
from judge.verdicts import Verdict, exit_code
from tools.generate_reference import command_names, help_of


def test_every_code_has_a_meaning() -> None:
    assert list(MEANINGS) == list(ExitCode)


def test_judges_use_the_same_numbers() -> None:
    assert exit_code(Verdict.PASS) == ExitCode.OK
    assert exit_code(Verdict.FAIL) == ExitCode.FAILED
    assert exit_code(Verdict.UNKNOWN) == exit_code() == ExitCode.UNDECIDED
    assert judge_codes.CANNOT_RUN == ExitCode.CANNOT_RUN
    assert judge_command.SCHEMA_VERSION == SCHEMA_VERSION


def test_help_shows_flags_without_a_value_and_fits_the_terminal() -> None:
    commands = list(command_names())
    assert len(commands) > 20
    texts = [help_of(words) for words in commands]
    assert [text for text in texts if "<bool>" in text] == []
    assert [text for text in texts if " --json " in text] != []
    assert [line for text in texts for line in text.splitlines() if len(line) > 80] == []
