"""The APIs that the controller decides, one file each; node/assembly/admin_apis.py is the registry."""
