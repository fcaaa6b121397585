"""Generates evidence of any size: consistent except for planted violations."""
