"""No element of a request is committed twice, and no request creates two delegation tokens.

The controller draws the id of a new token, and this id is the element's name. So a creation that is
executed twice commits two different elements, neither of them twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from event_log.commits import TOKENS
from judge import sql
from judge.history import History, Identity, identity_of, writes_of
from judge.property import PropertySpec, Violation, listed, zxid_row

SPEC: Final = PropertySpec(
    id="D3",
    name="at_most_once",
    statement="no element of a request is committed twice; no request creates two tokens",
    witnesses=("commits",),
    row="elements with a committed outcome",
    key="<broker>/<incarnation>/<sequence>/<element or token>",
)


def check(history: History) -> Iterator[Violation | None]:
    """Judge every element that was committed."""
    for (identity, element), commits in history.committed.items():
        zxids = sorted({commit.zxid for commit, _ in commits})
        if len(zxids) < 2:
            yield None
            continue
        key = "/".join((*map(str, identity), element))
        request_id = commits[0][1].request_id
        sentence = f"{request_id}: {element} was committed more than once, at zxids {listed(zxids)}"
        yield SPEC.violation(key, map(zxid_row, zxids), sentence)
    yield from _second_tokens(history)


def _second_tokens(history: History) -> Iterator[Violation]:
    written: dict[tuple[Identity, str], dict[str, set[int]]]
    written = defaultdict(lambda: defaultdict(set))
    for commit in history.applied:
        paths = {o.path for o in writes_of(commit, "admin") if o.path.startswith(TOKENS)}
        for outcome in commit.outcomes if paths else ():
            if TOKENS + outcome.element in paths:
                request = identity_of(outcome), outcome.request_id
                written[request][outcome.element].add(commit.zxid)
    for (identity, request_id), tokens in written.items():
        if len(tokens) > 1:
            zxids = sorted(set().union(*tokens.values()))
            key = "/".join((*map(str, identity), "token"))
            sentence = f"{request_id}: more than one token was created, at zxids {listed(zxids)}"
            yield SPEC.extra_violation(key, map(zxid_row, zxids), sentence)


INPUTS: Final = ("gold/committed",)
JUDGED: Final = "judged"
SQL: Final = f"""
WITH tokens AS (
  SELECT run, broker_id, incarnation, sequence, request_id,
    array_sort(array_distinct(flatten(collect_list(zxids)))) AS zxids
  FROM committed WHERE wrote_token
  GROUP BY run, broker_id, incarnation, sequence, request_id HAVING count(*) > 1)
SELECT run, CASE WHEN size(zxids) > 1
    THEN concat_ws('/', broker_id, incarnation, sequence, element) END AS key,
  {sql.zxid_rows("zxids")} AS rows,
  concat(request_id, ': ', element, ' was committed more than once, at zxids ',
    array_join(zxids, ', ')) AS sentence, 1 AS judged
FROM committed
UNION ALL
SELECT run, concat_ws('/', broker_id, incarnation, sequence, 'token'), {sql.zxid_rows("zxids")},
  concat(request_id, ': more than one token was created, at zxids ', array_join(zxids, ', ')), 0
FROM tokens
"""
