"""Client authentication: TLS, SASL, and how both become a principal.

Start with `authenticator`, the state machine of one connection. `listener_security` lists the SASL
mechanisms and builds them from Kafka's properties. Only `tls` and `jwks` read files; clock and
randomness are injected.
"""
