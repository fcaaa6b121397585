"""APIs of the group coordinator."""
