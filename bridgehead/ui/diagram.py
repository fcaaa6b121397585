"""The sequence diagram of one request, as SVG or as Mermaid text. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from bridgehead.cluster.errors import ClusterError
from bridgehead.ui import model
from bridgehead.ui.captions import Captions, api_name
from bridgehead.ui.reading import RunReader
from bridgehead.ui.rows import Rows
from bridgehead.ui.vocabulary import CLIENT, CONTROLLER, HARNESS, KINDS, NUMBERS, ZOOKEEPER

_LANE_WIDTH: Final = 150
_ROW: Final = 34
_LEFT, _TOP = 110, 70
_CAPTION_WIDTH: Final = 860
_ATTEMPTS_SHOWN_MAX: Final = 200
_COLORS: Final = {"ink": "#17202e", "soft": "#536073", "line": "#c8d0dc", "bad": "#b3261e"}
_PAINT: Final = "#1f5fbf"


@dataclass(frozen=True, slots=True)
class Step:
    """One event: the lane that wrote it, and the lane to which a message goes, if one does."""

    t: float
    lane: int
    to: int | None
    caption: str
    is_bad: bool


@dataclass(frozen=True, slots=True)
class Diagram:
    """A request's steps in their order, and the names of the lanes."""

    title: str
    lanes: tuple[str, ...]
    steps: tuple[Step, ...]


def diagram_of(reader: RunReader, request_id: str) -> Diagram:
    """Return the diagram of a request.

    Raises:
        ClusterError: the run has no such request.
    """
    rows = reader.collector.rows
    number = rows.number_of(request_id)
    if number is None:
        raise ClusterError(
            f"The run has no request {request_id!r}: `bridgehead ui` shows the ids of requests."
        )
    positions = story(rows, number)[:_ATTEMPTS_SHOWN_MAX]
    start = rows.value("t", positions[0])
    nodes = sorted({rows.value("node", p) for p in positions if _is_on_broker(rows, p)})
    names = (
        "Client",
        *(f"Broker {rows.nodes.values[n]}" for n in nodes),
        "Controller",
        "ZooKeeper",
    )
    lane_of = _lanes(rows, nodes)
    captions = Captions(rows)

    def attempt_of(position: int) -> int:
        return int(rows.value("attempt", position))

    received = NUMBERS["envelope_received"]
    arrived = {attempt_of(p) for p in positions if rows.value("kind", p) == received}
    steps = tuple(
        Step(
            rows.value("t", p) - start,
            lane_of(p),
            _target(rows, p, len(names)),
            model.detail(reader, captions, p)["caption"],
            KINDS[rows.value("kind", p)].key in ("envelope_rejected", "commit_unknown")
            or (rows.value("kind", p) == NUMBERS["forward_sent"] and attempt_of(p) not in arrived),
        )
        for p in positions
    )
    request = rows.requests[number]
    api = api_name(request.api_key) if request.api_key >= 0 else "a request"
    return Diagram(f"{api}, request {request_id}", names, steps)


def story(rows: Rows, number: int) -> list[int]:
    """Return the positions of a request's rows and of the commits that have its outcomes."""
    links = {position for position, _ in rows.links_of(number)}
    zxids = {rows.value("zxid", position) for position in links}
    numbers = {rows.value("number", position) for position in links} - {0}
    sent, committed = NUMBERS["commit_sent"], NUMBERS["committed"]
    unknown = NUMBERS["commit_unknown"]
    return [
        position
        for position in range(rows.base, len(rows))
        if rows.value("request", position) == number
        or position in links
        or (rows.value("kind", position) == committed and rows.value("zxid", position) in zxids)
        or (
            rows.value("kind", position) in (sent, unknown)
            and rows.value("number", position) in numbers
        )
    ]


def _is_on_broker(rows: Rows, position: int) -> bool:
    return rows.value("lane", position) not in (CONTROLLER, ZOOKEEPER, CLIENT, HARNESS)


def _lanes(rows: Rows, nodes: Sequence[int]) -> Callable[[int], int]:
    places = {node: at for at, node in enumerate(nodes, start=1)}

    def lane_of(position: int) -> int:
        lane = rows.value("lane", position)
        if lane == CONTROLLER:
            return len(nodes) + 1
        if lane == ZOOKEEPER:
            return len(nodes) + 2
        return places.get(rows.value("node", position), 0)

    return lane_of


def _target(rows: Rows, position: int, lanes: int) -> int | None:
    """Return the lane to which a message of this row goes: -1 means that of the sender's broker."""
    targets = {"responded": 0, "forward_sent": lanes - 2, "commit_sent": lanes - 1}
    key = KINDS[rows.value("kind", position)].key
    if key == "received":
        return -1
    if key == "committed":
        return -2
    return targets.get(key)


def as_svg(diagram: Diagram) -> str:
    """Return the diagram as an SVG document."""
    x = [_LEFT + _LANE_WIDTH * at + _LANE_WIDTH // 2 for at in range(len(diagram.lanes))]
    width = _LEFT + _LANE_WIDTH * len(x) + _CAPTION_WIDTH
    height = _TOP + _ROW * len(diagram.steps) + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif" font-size="13">',
        f"<title>{_text(diagram.title)}</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="12" y="22" font-size="15" font-weight="600">{_text(diagram.title)}</text>',
    ]
    for at, name in enumerate(diagram.lanes):
        parts.append(
            f'<text x="{x[at]}" y="50" text-anchor="middle" font-weight="600">{name}</text>'
        )
        parts.append(f'<path d="M{x[at]} {_TOP - 8} V{height - 10}" stroke="{_COLORS["line"]}"/>')
    for row, step in enumerate(diagram.steps):
        parts += _svg_step(step, x, _TOP + _ROW * row + _ROW // 2)
    return "\n".join([*parts, "</svg>", ""])


def _svg_step(step: Step, x: Sequence[int], y: int) -> list[str]:
    paint = _COLORS["bad"] if step.is_bad else _PAINT
    parts = [f'<text x="12" y="{y + 4}" fill="{_COLORS["soft"]}">+{step.t:.2f} ms</text>']
    ends = _ends(step, len(x))
    if ends is not None:
        start, end = x[ends[0]], x[ends[1]]
        side = 1 if end > start else -1
        tip = end - 6 * side
        parts.append(
            f'<path d="M{start} {y} H{tip} m{-6 * side} -5 l{6 * side} 5 l{-6 * side} 5" '
            f'fill="none" stroke="{paint}" stroke-width="2"/>'
        )
    parts.append(f'<circle cx="{x[step.lane]}" cy="{y}" r="5" fill="{paint}"/>')
    caption_x = x[-1] + _LANE_WIDTH // 2
    caption = _text(step.caption)
    parts.append(f'<text x="{caption_x}" y="{y + 4}" fill="{_COLORS["ink"]}">{caption}</text>')
    return parts


def _ends(step: Step, lanes: int) -> tuple[int, int] | None:
    """Return the lanes from which and to which a message goes; None without a message."""
    if step.to is None:
        return None
    if step.to == -1:
        return 0, step.lane
    if step.to == -2:
        return lanes - 1, step.lane
    return (step.lane, step.to) if step.lane != step.to else None


def as_mermaid(diagram: Diagram) -> str:
    """Return the diagram as the text of a Mermaid sequence diagram."""
    lines = ["sequenceDiagram"]
    lines += [f"    participant L{at} as {name}" for at, name in enumerate(diagram.lanes)]
    for step in diagram.steps:
        text = _mermaid_text(step.caption)
        ends = _ends(step, len(diagram.lanes))
        if ends is None:
            lines.append(f"    Note over L{step.lane}: {text}")
        else:
            arrow = "--x" if step.is_bad else "->>"
            lines.append(f"    L{ends[0]}{arrow}L{ends[1]}: {text}")
    return "\n".join(lines) + "\n"


def _mermaid_text(text: str) -> str:
    """Return a text without the characters that Mermaid gives a meaning: they become entities."""
    return "".join(
        character if character.isalnum() or character in " .,()-_/" else f"#{ord(character)};"
        for character in text
    )


def _text(text: str) -> str:
    """Return a text for XML, which has no control characters."""
    return escape("".join(character if character.isprintable() else "�" for character in text))


FORMATS: Final[dict[str, Callable[[Diagram], str]]] = {"svg": as_svg, "mermaid": as_mermaid}
