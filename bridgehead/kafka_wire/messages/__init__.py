"""One file per API: the dataclasses of its request and response, which are its tables."""
