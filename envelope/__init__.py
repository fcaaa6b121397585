"""The seam between broker and controller: Envelopes, principal serde, the gRPC channel and server."""
