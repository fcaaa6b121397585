"""The APIs that a broker answers itself; node/local_apis.py is the registry."""
