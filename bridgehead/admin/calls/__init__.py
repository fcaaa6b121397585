"""The calls of the admin clients, one module per family of APIs.

Each function returns a plan (`bridgehead.admin.requests`). `AdminClient` and `AsyncAdminClient`
have a method for each, with the same arguments and result. Messages are imported at first use,
because a program uses few of the APIs and `import bridgehead.admin` must be quick. If a drafted
message has more fields than the shipped one, the drafted class is used for both dialects.
"""
