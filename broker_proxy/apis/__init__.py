"""The APIs that a broker answers itself, one file each; node/apis.py is the registry."""
