"""Where a tree of znodes comes from: an ensemble, a server's files, or a dump."""
