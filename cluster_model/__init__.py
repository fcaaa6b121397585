"""What a cluster is: pure values and functions, without I/O, clock or randomness."""
