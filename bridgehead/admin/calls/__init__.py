"""The calls of the admin clients, one module per family of APIs.

A call is a function that returns a plan (`bridgehead.admin.requests`). `AdminClient` and
`AsyncAdminClient` have a method for each call, with the same arguments and result. Messages are
imported at first use, because a program uses few of the APIs and `import bridgehead.admin` must be
quick. If a message has more fields in the dialect `drafted`, its drafted class is used for both
dialects.
"""
