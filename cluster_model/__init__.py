"""The cluster model: values and pure functions, without I/O, clocks or randomness."""
