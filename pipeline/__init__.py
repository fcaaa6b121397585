"""Builds tables, verdicts and a report from evidence, on Spark. Start reading in `run.py`."""
