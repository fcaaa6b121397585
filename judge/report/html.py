"""Builds HTML pages and tables. Text is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

_STYLE: Final = (Path(__file__).parent / "style.css").read_text(encoding="utf-8")


def document(title: str, body: str) -> str:
    """Return a page without scripts or network access; `body` is HTML."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title>"
        f"<style>{_STYLE}</style></head><body>{body}</body></html>\n"
    )


def mark(verdict: str) -> str:
    """Return a verdict as a coloured mark."""
    return f'<span class="verdict {verdict}">{verdict}</span>'


def cells(row: Mapping[str, Any], names: str) -> list[Any]:
    """Return the named values of a row."""
    return [row[name] for name in names.split()]


def table(
    heads: Sequence[str], rows: Iterable[Sequence[Any]], *, raw: bool = False, numbers: int = 0
) -> str:
    """Return a table; the last `numbers` columns are numbers. `raw`: the cells are HTML."""
    count = len(heads)

    def cell(at: int, value: Any, tag: str) -> str:
        text = f"{value:,}" if isinstance(value, int) else str(value)
        shown = text if raw and tag == "td" else escape(text)
        return f"<{tag}{' class=n' if at >= count - numbers else ''}>{shown}</{tag}>"

    head = "".join(cell(at, name, "th") for at, name in enumerate(heads))
    body = "".join(
        f"<tr>{''.join(cell(at, value, 'td') for at, value in enumerate(row))}</tr>" for row in rows
    )
    return f"<table>{f'<tr>{head}</tr>' if any(heads) else ''}{body}</table>"
