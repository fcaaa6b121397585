"""`pipeline watch`: rates, open requests and latencies of a run while its nodes still write it."""
