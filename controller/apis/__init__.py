"""The admin write APIs of the controller, one file each; node/admin_apis.py is the registry."""
