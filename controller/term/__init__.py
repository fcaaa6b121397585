"""One term of the active controller: the loop and its background work."""
