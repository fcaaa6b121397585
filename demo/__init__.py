"""The demos: `make demo` and `bridgehead demo NAME`."""
