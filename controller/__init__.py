"""The one writer of metadata: election, decisions, the fenced group commit."""
