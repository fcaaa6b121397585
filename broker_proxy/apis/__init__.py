"""The APIs that a broker answers itself; node/assembly/local_apis.py is the registry."""
