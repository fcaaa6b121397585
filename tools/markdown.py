"""The paragraphs of Markdown: in our pages, each is one line."""

from __future__ import annotations

import re
from typing import Final

_FENCE: Final = re.compile(r" *```")
_ITEM: Final = re.compile(r" *(?:[-*+]|\d+\.) ")
# A heading, a row of a table, a quotation or HTML: such a line belongs to no paragraph.
_OTHER: Final = re.compile(r"#+ |\||>|<")


def one_line_per_paragraph(text: str) -> str:
    """Return the text with the lines of each paragraph, and of each item of a list, joined.

    Blocks of code, tables, headings and comments keep their lines.
    """
    lines: list[str] = []
    in_fence = in_comment = in_list = is_open = False  # is_open: the last line may continue
    for line in text.split("\n"):
        if _FENCE.match(line):
            in_fence, is_open = not in_fence, False
            lines.append(line)
            continue
        in_comment = in_comment or line.startswith("<!--")
        is_item = _ITEM.match(line) is not None
        is_text = bool(line.strip()) and not (in_fence or in_comment or _OTHER.match(line))
        if is_text and is_open and not is_item:
            lines[-1] += " " + line.strip()
            continue
        if line and not in_fence:
            in_list = is_item or (in_list and line.startswith(" "))
        is_open = is_text and (in_list or not line.startswith("    "))
        in_comment = in_comment and "-->" not in line
        lines.append(line)
    return "\n".join(lines)
