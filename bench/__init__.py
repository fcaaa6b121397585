"""Benchmarks: ratios from one run; `python -m bench`."""
