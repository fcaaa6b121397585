"""The seam between broker and controller: Envelopes, principals, the gRPC stream's two ends."""
