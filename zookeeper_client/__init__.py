"""An async interface over kazoo. The controller's store writes, the broker's watcher reads."""
