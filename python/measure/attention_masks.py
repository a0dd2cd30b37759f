"""Fused attention with masks, on this machine's GPU: attention_masks.py OUT

Rows of data/measurements/h200/attention_masks.jsonl: `scaled_dot_product_attention` in bf16 without a mask and with six kinds
of them, forward alone and with the gradients of q, k and v. Times are the kernels' by the profiler, means of five calls:
`forward_us` and `backward_us` of attention's own, `us` of all, conversions of the mask among them. q, k and v lie as a
projection leaves them, [batch, length, heads, dim].
"""

from __future__ import annotations

import itertools
import json
import pathlib
import sys
import typing

import torch
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile

CALLS = 5
Size = tuple[int, int, int, int, int]  # batch, heads, queries, keys, dim

LONG: list[Size] = [
    *((1, 24, n, n, 128) for n in (1024, 2048, 4096, 8192, 16384, 32896)),
    (4, 16, 1024, 1024, 64), (4, 16, 4096, 4096, 64), (8, 12, 512, 512, 64), (16, 12, 384, 384, 64), (32, 16, 128, 128, 64),
    (4, 16, 4096, 300, 72), (4, 16, 4096, 128, 64), (8, 20, 1024, 300, 112), (2, 32, 2048, 2048, 128), (1, 32, 8192, 256, 64),
]  # fmt: skip
WINDOWS = ((49, 32), (64, 32), (144, 32), (196, 64), (256, 32), (197, 64))
SHARED = ((2048, 4), (512, 8), (128, 16), (32, 32), (4096, 3), (1024, 6), (256, 12), (64, 24), (8192, 4))


def mask_of(kind: str, size: Size) -> torch.Tensor | None:
    batch, heads, queries, keys, _ = size
    shape = {"keys": (batch, 1, 1, keys), "full": (1, 1, queries, keys), "heads": (1, heads, queries, keys),
             "batch": (batch, heads, queries, keys)}  # fmt: skip
    if kind == "none":
        return None
    if kind == "keys_expanded":
        return torch.ones(batch, 1, 1, keys, dtype=torch.bool, device="cuda").expand(batch, 1, queries, keys)
    of, values = kind.split("_")
    made = torch.ones if values == "bool" else torch.zeros
    return made(shape[of], dtype=torch.bool if values == "bool" else torch.bfloat16, device="cuda")


def kernels(call: typing.Callable[[], typing.Any]) -> dict[str, float]:
    for _ in range(2):
        call()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as seen:
        for _ in range(CALLS):
            call()
        torch.cuda.synchronize()
    took: dict[str, float] = {}
    for event in seen.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            took[event.name] = took.get(event.name, 0) + event.device_time / CALLS
    return took


def measured(size: Size, kind: str, backward: bool) -> dict[str, typing.Any]:
    batch, heads, queries, keys, dim = size
    q, k, v = (
        torch.randn(batch, n, heads, dim, device="cuda", dtype=torch.bfloat16).transpose(1, 2).requires_grad_(backward)
        for n in (queries, keys, keys)
    )
    mask = mask_of(kind, size)

    def forward() -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    given = torch.randn_like(forward()) if backward else None
    took = kernels((lambda: torch.autograd.grad(forward(), (q, k, v), given)) if backward else forward)
    own = {name: us for name, us in took.items() if "sdpa" in name or "fmha" in name or "flash" in name}
    first = sum(us for name, us in own.items() if "fprop" in name or "fwd" in name or "forward" in name)
    row = {"batch": batch, "heads": heads, "q_len": queries, "kv_len": keys, "head_dim": dim, "mask": kind}
    row |= {"forward_us": round(first, 2)}
    if backward:
        row |= {"backward_us": round(sum(own.values()) - first, 2)}
    return row | {"us": round(sum(took.values()), 2)}


def main() -> int:
    long = itertools.product(LONG, ("none", "keys_bool", "keys_float", "keys_expanded", "full_bool", "full_float"), (False, True))
    windows = [(b, h, n, n, d) for n, d in WINDOWS for b, h in SHARED if b * h * n * n < 6e8]
    small = itertools.product(windows, ("none", "heads_float", "batch_float", "keys_bool"), (False, True))
    with pathlib.Path(sys.argv[1]).open("w", encoding="utf-8") as out:
        for size, kind, backward in (*long, *small):
            if not backward or size[2] <= 16384:
                out.write(json.dumps(measured(size, kind, backward)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
