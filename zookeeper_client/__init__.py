"""kazoo behind a small async port. Only the controller's store and the broker's watcher import it."""
