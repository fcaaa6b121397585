"""`make bench-compare` aligns the lines of two commits and shows the ratios of their numbers."""

from __future__ import annotations

from bench.compare import compared, read_lines

OUTPUT = """pipeline-start (57 s)
  2.06 x a bare Spark start: 2,500 generated events, Kafka 3.9.1
  {rate} topics/s
"""


def test_lines_are_read_without_the_names_of_benchmarks() -> None:
    assert read_lines(OUTPUT.format(rate="1,932")) == {
        "# x a bare Spark start: # generated events, Kafka 3.9.1": [2.06, 2500.0],
        "# topics/s": [1932.0],
    }


def test_medians_are_compared_and_settings_are_not() -> None:
    base = {"# s for # events": [[4.0, 2.0, 3.0], [10.0] * 3], "gone": [[1.0]]}
    ours = {"# s for # events": [[1.0, 1.5, 9.0], [10.0] * 3], "new #": [[1.0]]}
    assert list(compared(base, ours)) == ["[3 -> 1.5 (0.50!)] s for 10 events"]


def test_half_as_much_more_is_not_marked() -> None:
    assert list(compared({"# s": [[2.0]]}, {"# s": [[3.0]]})) == ["[2 -> 3 (1.50)] s"]
    assert list(compared({"# s": [[0.0]]}, {"# s": [[3.0]]})) == ["[0 -> 3] s"]
