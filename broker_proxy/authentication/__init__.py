"""Client authentication: TLS, SASL, and how both become a principal.

Start with `authenticator`, the state machine of one connection. `mechanisms` lists the SASL
mechanisms; `listener_security` builds them from Kafka's properties. Everything but `tls` is pure:
clock and randomness are injected.
"""
