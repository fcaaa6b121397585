"""Workloads under faults, whose evidence is then judged."""
