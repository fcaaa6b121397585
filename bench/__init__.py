"""Benchmarks that report ratios within one run; `python -m bench`."""
