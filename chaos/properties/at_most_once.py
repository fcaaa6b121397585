"""D3: no element of a request takes effect twice, however often the request was sent."""

from __future__ import annotations

from typing import Final

from chaos.history import History
from chaos.properties.breach import violation, zxid
from chaos.verdicts import Finding, Property


def check(history: History) -> Finding:
    """Judge every element that was committed."""
    violations = []
    for (identity, element), found in history.committed.items():
        zxids = sorted({commit.zxid for commit, _ in found})
        if len(zxids) < 2:
            continue
        key = "/".join((*map(str, identity), element))
        request_id = found[0][1].request_id
        sentence = f"{request_id}: {element} was committed at {', '.join(map(str, zxids))}"
        violations.append(violation("D3", key, [zxid(each) for each in zxids], sentence))
    return Finding(len(history.committed), tuple(violations))


PROPERTY: Final = Property("D3", check)
