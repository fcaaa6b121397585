"""The APIs that the controller decides, one file each; node/admin_apis.py is the registry."""
