"""The single writer, and the parts that it works with: multis, policies, quotas, waits."""
