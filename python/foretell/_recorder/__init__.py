"""What is behind :func:`foretell.record`; imported when it is first used, since it needs PyTorch."""
