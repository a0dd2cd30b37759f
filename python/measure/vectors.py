"""Products of one row as Inductor writes them itself, with weights of 16 and 8 bits: vectors.py OUT SECONDS

With coordinate descent on (gpt-fast, torchao's and torchchat's scripts) a product of one row is a kernel of the compiler's own, and what
makes its input is computed again in every block of it. Here the same products with nothing before them, behind a norm written out, and
behind a gated activation of two products, which with weights of 8 bits reads their scales too; each over copies of the weights that
together do not fit into L2, timed by the profiler's clock. Also 4 bits through tinygemm. JSON lines.
"""

from __future__ import annotations

import json
import pathlib
import sys
import time
import typing

import matvec
import torch
import torch._inductor.config as inductor
from torch.nn import functional as F

SIZES = ((4096, 4096), (12288, 4096), (11008, 4096), (4096, 11008), (32000, 4096), (1024, 4096), (8192, 8192), (28672, 8192))
SIZES += ((8192, 28672), (2048, 2048), (8192, 2048), (2048, 8192), (14336, 4096), (4096, 14336), (4864, 896), (896, 4864), (5120, 5120), (13824, 5120))
LEAST, MOST, BYTES = 3, 24, 300e6


def plain(x: torch.Tensor, w: torch.Tensor, s: torch.Tensor | None) -> torch.Tensor:
    return F.linear(x, w) if s is None else F.linear(x, w.to(x.dtype)) * s


def normed(x: torch.Tensor, g: torch.Tensor, w: torch.Tensor, s: torch.Tensor | None) -> torch.Tensor:
    wide = x.float()
    return plain((wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).type_as(x) * g, w, s)


def gated(a: torch.Tensor, b: torch.Tensor, sa: torch.Tensor, sb: torch.Tensor, w: torch.Tensor, s: torch.Tensor | None) -> torch.Tensor:
    return plain(F.silu(a * sa) * (b * sb) if s is not None else F.silu(a) * b, w, s)


def measured(way: str, n: int, k: int, weights: str) -> dict[str, typing.Any]:
    torch._dynamo.reset()
    inductor.coordinate_descent_tuning = True
    size, row = (1 if weights == "int8" else 2) * n * k, lambda of: torch.randn(1, of, device="cuda", dtype=torch.bfloat16)
    copies = max(LEAST, min(MOST, int(BYTES / size)))
    made, scales = [], row(n)[0] if weights == "int8" else None
    for _ in range(copies):
        whole = torch.randint(-128, 127, (n, k), dtype=torch.int8, device="cuda")
        made.append(whole if weights == "int8" else whole.to(torch.bfloat16))
    before = {"plain": (row(k),), "normed": (row(k), row(k)[0]), "gated": (row(k), row(k), row(k)[0], row(k)[0])}[way]
    compiled = torch.compile({"plain": plain, "normed": normed, "gated": gated}[way], fullgraph=True)

    def run() -> None:
        for w in made:
            compiled(*before, w, scales)

    with torch.no_grad():
        for _ in range(3):
            run()
        found = matvec.kernels(run)
    return {"way": way, "n": n, "k": k, "weights": weights, "us": round(sum(us for _, _, us in found) / copies, 3),
            "launches": sum(c for _, c, _ in found) / copies, "kernel": found[0][0]}


def packed(n: int, k: int) -> dict[str, typing.Any]:
    copies = max(LEAST, min(MOST, int(BYTES / (n * k / 2))))
    layers, x = [matvec.Int4(k, n) for _ in range(copies)], torch.randn(1, k, device="cuda", dtype=torch.bfloat16)
    with torch.no_grad():
        found = matvec.kernels(lambda: [layer(x) for layer in layers])
    return {"way": "plain", "n": n, "k": k, "weights": "int4", "us": round(sum(us for _, _, us in found) / copies, 3), "kernel": found[0][0]}


def main() -> None:
    out, until = pathlib.Path(sys.argv[1]), time.monotonic() + float(sys.argv[2])
    cases = [("plain", n, k, "int8") for n, k in SIZES] + [("gated", n, k, w) for n, k in SIZES if k > n for w in ("int8", "bf16")]
    cases += [("normed", n, k, w) for n, k in SIZES if k <= n for w in ("int8", "bf16")] + [("plain", n, k, "int4") for n, k in SIZES]
    with out.open("w") as file:
        for way, n, k, weights in cases:
            if time.monotonic() > until:
                break
            try:
                found = packed(n, k) if weights == "int4" else measured(way, n, k, weights)
            except Exception as error:  # the others are worth having
                found = {"way": way, "n": n, "k": k, "weights": weights, "error": repr(error)[:200]}
            torch.cuda.empty_cache()
            file.write(json.dumps(found) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
