"""Interpretations of the spec's scalar: exact, enclosed, symbolic, and solver terms."""
