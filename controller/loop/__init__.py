"""The single writer, and the state of the requests in it."""
