"""APIs about records. A node without a data plane has empty logs."""
