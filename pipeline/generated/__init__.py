"""Histories of any size that never happened: consistent, but for what is planted in them."""
