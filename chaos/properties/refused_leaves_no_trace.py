"""D2: what was refused was not done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from chaos.history import NONE, History, row_of
from chaos.properties.breach import violation, zxid
from chaos.verdicts import Finding, Property
from event_log.promises import AGAIN_CODES, INFO_CODES, OK_CODES, Violation


def _is_refusal(error: int) -> bool:
    return error not in OK_CODES and error not in INFO_CODES


def _answered(history: History) -> Iterator[Violation | None]:
    for answer in history.answers:
        for element, error in answer.elements:
            if not _is_refusal(error):
                continue
            outcomes = history.committed.get((answer.identity, element), [])
            done = [commit for commit, outcome in outcomes if outcome.error == NONE]
            if not done:
                yield None
                continue
            rows = [row_of(answer.answered), row_of(answer.decided)]
            rows += [zxid(commit.zxid) for commit in done]
            sentence = (
                f"{answer.request_id}: {element} was refused with code {error} and committed at "
                f"zxid {done[0].zxid}"
            )
            yield violation("D2", f"{answer.request_id}/{element}", rows, sentence)


def _told(history: History) -> Iterator[Violation | None]:
    for operation in history.operations:
        for element, error in operation.elements:
            name = (operation.api_key, element)
            if not _is_refusal(error) or error in AGAIN_CODES or name not in history.named_once:
                continue
            done = [commit for commit, _ in history.effects.get(name, [])]
            if not done:
                yield None
                continue
            assert operation.completed is not None
            rows = [row_of(operation.invoked), row_of(operation.completed)]
            rows += [zxid(commit.zxid) for commit in done]
            sentence = (
                f"{operation.op_id}: {element} was refused with code {error} and committed at "
                f"zxid {done[0].zxid}"
            )
            yield violation("D2", f"{operation.op_id}/{element}", rows, sentence)


def check(history: History) -> Finding:
    """Judge every refused element of brokers' answers and of clients."""
    judged = [*_answered(history), *_told(history)]
    return Finding(len(judged), tuple(each for each in judged if each is not None))


PROPERTY: Final = Property("D2", check)
