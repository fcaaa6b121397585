"""What was left behind, word for word: nothing is lost, nothing is understood yet."""
