"""Backends with one planted fault each."""
