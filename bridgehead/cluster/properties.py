r"""Java's .properties format, as Kafka's `server.properties` uses it; no I/O.

Keys end at the first unescaped `=`, `:` or white space. `#` and `!` begin comments. A line that
ends in an odd number of backslashes continues on the next line, whose leading white space is cut.
`\t \n \r \f \uXXXX` are escapes; any other escaped character is taken literally. The last value of
a repeated key wins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_BLANK = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE_PATTERN = re.compile(r"\\(u[0-9a-fA-F]{4}|u|.)", re.DOTALL)


def parse_properties(text: str) -> dict[str, str]:
    r"""Return the keys and values of `text`.

    Raises:
        ValueError: a `\u` is not followed by four hexadecimal digits. The message names the
            property and does not show its value.
    """
    result: dict[str, str] = {}
    for line in _logical_lines(text):
        key, value = _split(line)
        try:
            result[_unescape(key)] = _unescape(value)
        except ValueError as error:
            raise ValueError(f"{error} in the property {key}.") from None
    return result


def format_properties(properties: Mapping[str, str]) -> str:
    """Return text that `parse_properties` and Java parse to `properties`."""
    return "".join(
        f"{_escape(key, key=True)}={_escape(value, key=False)}\n"
        for key, value in properties.items()
    )


def _logical_lines(text: str) -> Iterator[str]:
    pending = ""
    for natural in re.split(r"\r\n|\r|\n", text):
        line = natural.lstrip(_BLANK)
        if not pending and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending += line[:-1]
            continue
        yield pending + line
        pending = ""
    if pending:
        yield pending


def _split(line: str) -> tuple[str, str]:
    position = 0
    while position < len(line) and line[position] not in "=:" + _BLANK:
        position += 2 if line[position] == "\\" else 1
    rest = line[position:].lstrip(_BLANK)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANK)
    return line[:position], rest


def _unescape(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        escaped = match[1]
        if escaped == "u":
            raise ValueError("Malformed \\uxxxx encoding")  # the text may be a password
        if escaped[0] == "u":
            return chr(int(escaped[1:], 16))
        return _ESCAPES.get(escaped, escaped)

    unescaped = _ESCAPE_PATTERN.sub(replace, text)
    # Java writes a character above U+FFFF as two escapes.
    return unescaped.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _escape(text: str, *, key: bool) -> str:
    pieces: list[str] = []
    for position, character in enumerate(text):
        if character == " ":
            pieces.append("\\ " if key or position == 0 else " ")
        elif character in "\\=:#!":
            pieces.append("\\" + character)
        elif character in "\t\n\r\f":
            pieces.append("\\" + {"\t": "t", "\n": "n", "\r": "r", "\f": "f"}[character])
        elif ord(character) > 0xFFFF:
            pieces.append(character)
        elif not " " <= character <= "~":
            pieces.append(f"\\u{ord(character):04x}")
        else:
            pieces.append(character)
    return "".join(pieces)
