"""Client authentication: TLS, SASL, and the principal that results from them.

Start with `authenticator`, the state machine of one connection. `listener_security` lists the SASL
mechanisms and builds them from Kafka's properties. Only `tls` and `jwks` read files. The clock and
the source of randomness are injected.
"""
