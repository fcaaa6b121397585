"""The admin write APIs of the controller, one file each; node/apis.py is the registry."""
