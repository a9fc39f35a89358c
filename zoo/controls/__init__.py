"""Backends that are right, each computed in another way."""
