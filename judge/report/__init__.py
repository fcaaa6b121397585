"""The parts of the report that need no Spark, and the page that `judge --html` writes."""
