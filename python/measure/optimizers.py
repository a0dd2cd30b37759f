"""Optimizer steps and gradient clipping over `tensors` parameters of one size, `params` elements together.

State lives in place, so there is one copy of it: below about 4 M parameters it stays in L2.
"""

from __future__ import annotations

import random

from family import Case, Family, choice, log_uniform, pick

from foretell.calibrate.kernels.optimizers import CLIP, OPTIMIZERS, build_optimizer

MAX_PARAMS = 1 << 29


def draw_optimizer(rng: random.Random) -> Case | None:
    """1 to 400 tensors, 256 Ki to 512 Mi parameters together."""
    op, tensors = choice(rng, [*OPTIMIZERS, CLIP]), log_uniform(rng, 1, 401)
    size = log_uniform(rng, 1 << 18, MAX_PARAMS) // tensors
    if size < 1024:
        return None
    return {"dtype": pick(rng, {"fp32": 1.0, "bf16": 1.0}), "op": op, "tensors": tensors, "params": size * tensors}


OPTIMIZER = Family("optimizer", ("dtype", "op", "tensors", "params"), draw_optimizer, build_optimizer, rotate=False)
