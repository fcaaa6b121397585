"""One request in the controller: its state, its host names, its events, response and log line."""
