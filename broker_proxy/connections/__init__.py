"""Sockets of clients: listeners, limits, request order, logins."""
