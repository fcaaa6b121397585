"""What makes decisions durable: the fenced multi, the outcomes, the load."""
