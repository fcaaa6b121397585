"""The HTML report and the JUnit document."""
