"""Operators on grids of any number of axes: convolution, pooling, patches."""
