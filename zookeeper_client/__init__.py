"""A small async interface over kazoo: the controller's store writes with it, the watcher reads."""
