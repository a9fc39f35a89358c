"""Models in motion: forward and backward of each, over the parameters that its layout names."""
