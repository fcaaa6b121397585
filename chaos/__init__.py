"""Break it on purpose, then judge what is left."""
