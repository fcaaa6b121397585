"""Evidence in; tables, verdicts and a report out. Runs on Spark; begin in `run.py`."""
