"""What people ask: who asked for what through whom, how long it took, and what became of it."""
