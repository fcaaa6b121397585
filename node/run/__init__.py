"""Starts and stops nodes: lifecycle, control socket, fork server."""
