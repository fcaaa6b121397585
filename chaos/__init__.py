"""Runs workloads under faults, and judges their evidence."""
