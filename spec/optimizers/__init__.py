"""Optimisers: one step as a function of parameters, gradients and state."""
