"""ACLs: bindings, requests, the built-in authorizer, their znodes."""
