"""Benchmarks, most of which report ratios within one run; `python -m bench`."""
