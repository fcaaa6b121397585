"""The control of a running cluster over HTTP (docs/control-api.md).

`operations` lists the operations, `openapi` describes them for generators of clients, `http` reads
requests and writes responses. `bridgehead.cluster.control_commands` executes the operations, for
HTTP, for the command line and for `Cluster`.
"""
