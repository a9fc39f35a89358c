"""Layers: pointwise and normalising ops, losses, and how layers are joined."""
