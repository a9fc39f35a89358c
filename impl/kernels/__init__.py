"""Kernels of our own, in Triton and in CUDA C++, which backends bring under test."""
