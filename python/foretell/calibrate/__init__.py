"""`foretell calibrate`: measures the GPU it runs on for a few minutes and has the forecasts adapted to it.

    python -m foretell.calibrate --minutes 5

Choosing what to measure (cells*.py, chooser.py), timing it (timing.py, kernels/, torch_device.py) and keeping it
(records.py) are apart; session.py brings them together. Only torch_device.py, timing.py, operands.py, kernels/ and
collective_worker.py import PyTorch. The fitting is the program's: `foretell fit --calibrate`.
"""
