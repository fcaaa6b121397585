"""Charts as SVG, without scripts; colours come from the page's style.

Lengths are in units of a view box of width 760; the page scales it. Text is escaped here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

WIDTH: Final = 760
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 14, 30
_TICKS: Final = 4
_LETTER: Final = 6.6  # the width of a letter


@dataclass(frozen=True, slots=True)
class Band:
    """A shaded stretch of the horizontal axis; `shade` is a class of the page's style."""

    start: float
    end: float
    label: str
    shade: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment on the horizontal axis, such as a fault."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Line:
    """A series of points; a point without a value interrupts the line."""

    name: str
    points: Sequence[tuple[float, float | None]]


def _figure(height: float, parts: Sequence[str], title: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )


def _text(x: float, y: float, text: str, of: str = "", anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" class="{of}" text-anchor="{anchor}">{escape(text)}</text>'
    )


def number(value: float) -> str:
    """Return a number in short form: 12k, 3.4M."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            scale = {"G": 1e9, "M": 1e6, "k": 1e3}[unit]
            return f"{value / scale:.3g}{unit}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _top_of(value: float) -> float:
    """Return the next round number at or above a value."""
    if value <= 0:
        return 1.0
    power: float = 10.0 ** (len(str(int(value))) - 1 if value >= 1 else -3)
    steps = (1, 1.5, 2, 3, 4, 5, 6, 8, 10, 20, 50, 100, 200, 500, 1000)
    return next(power * step for step in steps if power * step >= value)


def _ticks(span: float, *, whole: bool) -> list[float]:
    """Return at most nine round numbers from 0 to `span`; if `whole`, only integers."""
    steps = (base * 10**power for power in range(0 if whole else -3, 9) for base in (1, 2, 5))
    step = next(candidate for candidate in steps if span / candidate <= 8)
    return [at * step for at in range(int(span / step + 1e-9) + 1)]


def lines(
    title: str,
    series: Sequence[Line],
    bands: Sequence[Band],
    unit: str,
    *,
    x_unit: str = "s",
    marks: Sequence[Mark] = (),
) -> str:
    """Draw series, with bands and marks behind them.

    Without `x_unit`, the ticks of x are whole numbers. The axis begins at 0 and ends at the last
    point or mark.
    """
    height = 240.0
    xs = [x for line in series for x, _ in line.points] or [0.0]
    ys = [y for line in series for _, y in line.points if y is not None] or [0.0]
    span = max([*xs, *(mark.at for mark in marks), 1e-9])
    top = _top_of(max(ys))
    plot_width, plot_height = WIDTH - _LEFT - _RIGHT, height - _TOP - _BOTTOM

    def at(x: float, y: float) -> tuple[float, float]:
        return _LEFT + x / span * plot_width, _TOP + plot_height * (1 - y / top)

    parts = [*_bands(bands, span, plot_height), *_marks(marks, span, plot_height, x_unit)]
    for tick in range(_TICKS + 1):
        x0, y = at(0, top * tick / _TICKS)
        parts.append(f'<path d="M{x0:.1f} {y:.1f}H{WIDTH - _RIGHT}" class="grid"/>')
        parts.append(_text(_LEFT - 6, y + 4, number(top * tick / _TICKS), "quiet", "end"))
    for second in _ticks(span, whole=not x_unit):
        x, _ = at(second, 0)
        anchor = "end" if x > WIDTH - _RIGHT - 20 else "middle"
        parts.append(_text(x, height - 10, f"{number(second)} {x_unit}", "quiet", anchor))
    for index, line in enumerate(series):
        for piece in _pieces(line.points):
            (x, y), *others = (at(*point) for point in piece)
            path = "".join(f"L{x:.1f} {y:.1f}" for x, y in others)
            parts.append(
                f'<path d="M{x:.1f} {y:.1f}{path}" class="line s{index}"/>'
                if path  # a path through one point draws nothing
                else f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" class="line s{index}"/>'
            )
    parts.append(_text(_LEFT, 10, unit, "quiet"))
    return _legend([line.name for line in series]) + _figure(height, parts, title)


def _x_of(value: float, span: float) -> float:
    """Return where a value is on the horizontal axis; values outside are at its ends."""
    return _LEFT + min(max(value, 0.0), span) / span * (WIDTH - _LEFT - _RIGHT)


def _bands(bands: Sequence[Band], span: float, plot_height: float) -> Iterator[str]:
    for band in bands:
        start, end = _x_of(band.start, span), _x_of(band.end, span)
        if end > start:
            yield (
                f'<rect x="{start:.1f}" y="{_TOP}" width="{end - start:.1f}" '
                f'height="{plot_height:.1f}" class="{band.shade}">'
                f"<title>{escape(band.label)}</title></rect>"
            )
            if end - start > _LETTER * len(band.label):
                yield _text(start + 4, _TOP + 12, band.label, "quiet")


def _marks(marks: Sequence[Mark], span: float, plot_height: float, unit: str) -> Iterator[str]:
    for mark in marks:
        x = _x_of(mark.at, span)
        yield (
            f'<path d="M{x:.1f} {_TOP}v{plot_height:.1f}" class="mark">'
            f"<title>{escape(mark.label)}, {number(mark.at)} {unit}</title></path>"
        )
        is_left = x > WIDTH - _RIGHT - _LETTER * len(mark.label)
        side, anchor = (-3, "end") if is_left else (3, "start")
        yield _text(x + side, _TOP + 26, mark.label, "", anchor)


def _pieces(points: Sequence[tuple[float, float | None]]) -> list[list[tuple[float, float]]]:
    """Return the points in pieces, cut where a point has no value."""
    pieces: list[list[tuple[float, float]]] = [[]]
    for x, y in points:
        if y is not None:
            pieces[-1].append((x, y))
        elif pieces[-1]:
            pieces.append([])
    return [piece for piece in pieces if piece]


def bars(title: str, rows: Sequence[tuple[str, Mapping[str, float]]], unit: str) -> str:
    """Draw a group of horizontal bars for each row, with one bar for each name."""
    names = list(dict.fromkeys(name for _, values in rows for name in values))
    top = _top_of(max((v for _, values in rows for v in values.values()), default=0))
    label_width, bar, gap = 270, 12, 10
    parts, y = [], 4.0
    for label, values in rows:
        parts.append(_text(label_width - 8, y + bar, _short(label), "", "end"))
        for name, value in values.items():
            width = max(value / top * (WIDTH - label_width - 80), 1)
            parts.append(
                f'<rect x="{label_width}" y="{y:.1f}" width="{width:.1f}" height="{bar - 2}" '
                f'rx="2" class="bar s{names.index(name)}"/>'
            )
            shown = f"{number(value)} {unit}".strip()
            parts.append(_text(label_width + width + 5, y + bar - 3, shown, "quiet"))
            y += bar
        y += gap
    legend = _legend(names) if len(names) > 1 else ""
    return legend + _figure(max(y, 20), parts, title)


def stacks(title: str, rows: Sequence[tuple[str, Sequence[tuple[str, float]]]], unit: str) -> str:
    """Draw one bar for each row, made of named parts in order."""
    names = list(dict.fromkeys(name for _, parts in rows for name, _ in parts))
    top = _top_of(max((sum(v for _, v in parts) for _, parts in rows), default=0))
    label_width, bar, gap = 160, 22, 10
    drawn, y = [], 4.0
    for label, parts_of in rows:
        x = float(label_width)
        drawn.append(_text(label_width - 8, y + 15, _short(label), "", "end"))
        for name, value in parts_of:
            width = value / top * (WIDTH - label_width - 90)
            drawn.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{bar}" '
                f'class="bar s{names.index(name)}"><title>{escape(name)}: {number(value)} '
                f"{escape(unit)}</title></rect>"
            )
            x += width
        total = sum(value for _, value in parts_of)
        drawn.append(_text(x + 6, y + 15, f"{number(total)} {unit}", "quiet"))
        y += bar + gap
    return _legend(names) + _figure(max(y, 20), drawn, title)


def matrix(
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    cells: Mapping[tuple[str, str], int],
    wrong: Sequence[tuple[str, str]],
) -> str:
    """Draw a table of counts; those in the cells of `wrong` must be 0."""
    cell_width, cell_height, left, top = 150, 44, 200, 30
    parts = [
        _text(left + at * cell_width + cell_width / 2, 20, name, "quiet", "middle")
        for at, name in enumerate(columns)
    ]
    for down, row in enumerate(rows):
        y = top + down * cell_height
        parts.append(_text(left - 10, y + 27, row, "", "end"))
        for across, column in enumerate(columns):
            count = cells.get((row, column), 0)
            shade = "cell"
            if (row, column) in wrong:
                shade = "cell bad" if count else "cell must"
            x = left + across * cell_width
            parts.append(
                f'<rect x="{x + 2}" y="{y + 2}" width="{cell_width - 4}" '
                f'height="{cell_height - 4}" rx="4" class="{shade}"/>'
            )
            parts.append(_text(x + cell_width / 2, y + 28, f"{count:,}", "big", "middle"))
    return _figure(top + len(rows) * cell_height + 6, parts, title)


def _legend(names: Sequence[str]) -> str:
    items = "".join(
        f'<span><i class="key s{at}"></i>{escape(name)}</span>' for at, name in enumerate(names)
    )
    return f'<p class="legend">{items}</p>'


def _short(text: str, most: int = 44) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
