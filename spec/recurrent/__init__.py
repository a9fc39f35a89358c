"""Recurrent layers: one step, the run over a sequence, and its gradient through time."""
