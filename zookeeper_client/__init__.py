"""kazoo behind a small async port: the controller's store writes through it, the watcher reads."""
