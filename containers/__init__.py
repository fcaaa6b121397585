"""Images, what runs inside them, and what builds them where no registry is reachable."""
