"""Who a client is: TLS, SASL, and how both become a principal.

Read first: `authenticator` is the state machine of one connection; `mechanisms` lists the SASL
mechanisms; `listener_security` makes all of it from Kafka's properties. Everything but `tls` is
pure: clock and randomness come in.
"""
