"""`make bench-compare` aligns the lines of two commits and shows the ratios of their numbers."""

from __future__ import annotations

from bench.compare import Line, compared, read_lines

OUTPUT = """pipeline-start (57 s)
  2.06 x a bare Spark start: 2,500 generated events, Kafka 3.9.1
  {rate} topics/s
"""


def test_lines_are_read_without_the_names_of_benchmarks() -> None:
    assert read_lines(OUTPUT.format(rate="1,932")) == {
        Line("# x a bare Spark start: # generated events, Kafka 3.9.1", 0): [2.06, 2500.0],
        Line("# topics/s", 0): [1932.0],
    }


def test_lines_that_differ_only_in_numbers_and_signs_are_aligned_in_order() -> None:
    assert read_lines(
        "  32 clients: +1.5 ms\n  256 clients: -2 ms (0.5-0.7)\n  8 clients: 3 ms"
    ) == {
        Line("# clients: # ms", 0): [32.0, 1.5],
        Line("# clients: # ms (#-#)", 0): [256.0, -2.0, 0.5, 0.7],
        Line("# clients: # ms", 1): [8.0, 3.0],
    }


def test_medians_are_compared_and_settings_are_not() -> None:
    line = Line("# s for # events", 1)
    base = {line: [[4.0, 2.0, 3.0], [10.0] * 3], Line("gone #", 0): [[1.0]]}
    ours = {line: [[1.0, 1.5, 9.0], [10.0] * 3], Line("# s for # events", 0): [[1.0], [2.0]]}
    assert list(compared(base, ours)) == ["[3 -> 1.5 (0.50!)] s for 10 events"]


def test_half_as_much_more_is_not_marked() -> None:
    line = Line("# s", 0)
    assert list(compared({line: [[2.0]]}, {line: [[3.0]]})) == ["[2 -> 3 (1.50)] s"]
    assert list(compared({line: [[0.0]]}, {line: [[3.0]]})) == ["[0 -> 3] s"]
