"""Suggests the name that a user may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(wrong: object, names: Iterable[str]) -> str:
    """Return ` Did you mean NAME?` with the name that is most like `wrong`; "" if none is.

    Upper and lower case, and the characters `_`, `-` and `.`, do not matter.
    """
    plain = {_plain(name): name for name in names}
    close = difflib.get_close_matches(_plain(str(wrong)), plain, n=1, cutoff=0.75)
    return f" Did you mean {plain[close[0]]}?" if close else ""


def _plain(name: str) -> str:
    return name.lower().translate({ord(separator): None for separator in "_-."})
