"""ACLs: codes, bindings, requests, the built-in authorizer."""
