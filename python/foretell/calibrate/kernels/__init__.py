"""Kernels as PyTorch runs them, bound to random operands: what `foretell calibrate` and python/measure time."""
