"""Prints sentences for people, without the control characters that evidence may contain.

A path or a topic's name in evidence from a stranger could otherwise change the terminal's title,
overwrite a verdict, or hide text.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import Final

SHOWN_MAX: Final = 5
INDENT: Final = " " * 14
_CHARS_MAX: Final = 4_000


def printable(text: str) -> str:
    """Return `text` with escapes for characters that control the terminal, or hide text."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{printable(text)}\n")


def complain(error: BaseException) -> None:
    """Print an error's sentence on standard error."""
    sys.stderr.write(f"{printable(str(error))}\n")


def complain_of_crash(crash: Exception) -> None:
    """Print that the program itself failed, and where."""
    at = crash.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    where = "" if at is None else f" in {at.tb_frame.f_code.co_filename}:{at.tb_lineno}"
    reason = f"{type(crash).__name__}: {str(crash)[:_CHARS_MAX]}"
    sys.stderr.write(f"{printable(f'Unexpected {reason}{where}. This is a defect.')}\n")


def say_some(sentences: Sequence[str], prefix: str) -> None:
    """Print the first sentences, and how many there are besides."""
    for sentence in sentences[:SHOWN_MAX]:
        say_wrapped(sentence, prefix)
    if len(sentences) > SHOWN_MAX:
        say(f"{prefix}... and {len(sentences) - SHOWN_MAX} more (--json)")


def say_wrapped(sentence: str, prefix: str) -> None:
    """Print a sentence in lines as wide as the terminal (80 columns if there is none)."""
    cut = sentence if len(sentence) <= _CHARS_MAX else f"{sentence[:_CHARS_MAX]}… (--json)"
    lines = textwrap.wrap(
        printable(cut),
        width=shutil.get_terminal_size().columns,
        initial_indent=prefix,
        subsequent_indent=INDENT,
        break_long_words=False,  # A name is never cut.
        break_on_hyphens=False,
    )
    sys.stdout.write("\n".join(lines) + "\n")
