"""The lines of evidence, verbatim."""
