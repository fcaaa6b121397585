"""What happened, as lines of JSON: the evidence every judge reads."""
