"""Runs workloads under faults, and judges the evidence of each run."""
