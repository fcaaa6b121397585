"""What a rehearsal did and found: as a document, on the terminal, as a page."""
