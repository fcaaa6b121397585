"""Messages that the KIPs drafted and Kafka never shipped so: those of `bridgehead.dialect=drafted`.

A class that extends one of Kafka's adds the draft's fields to its table; what it does not say is
as shipped.
"""
