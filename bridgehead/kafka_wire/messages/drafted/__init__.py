"""Messages as the KIPs drafted them, for `bridgehead.dialect=drafted`.

A class that extends a shipped one adds the fields of the draft.
"""
