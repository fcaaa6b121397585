"""The interface between broker and controller: Envelopes, principals, and the gRPC channel."""
