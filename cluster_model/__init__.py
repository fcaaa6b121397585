"""The cluster model: values and pure functions. They use no I/O, no clock and no randomness."""
