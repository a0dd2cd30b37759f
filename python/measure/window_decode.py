"""Steps of generation whose windows are full, and products of 8 bits within models: window_decode.py OUT [SECONDS]

Models with a window in all, some or none of their layers read a prompt longer than it and generate with transformers' own cache: the wall
time of each step, while the cache of layers without a window grows and that of the others no longer does, then the same steps once more
with their lengths known, and launches. Behind them steps of matvec.py in sizes that it does not have, with weights of 8 and 4 bits.
"""
from __future__ import annotations

import json
import pathlib
import sys
import time
import typing

import matvec
import torch
import transformers

PROMPT, STEPS = 1024, 10
SHAPE = {"hidden_size": 1024, "intermediate_size": 2816, "num_attention_heads": 16, "num_key_value_heads": 8, "num_hidden_layers": 12, "vocab_size": 32000}
CASES: tuple[tuple[str, dict[str, typing.Any]], ...] = (
    ("llama", {}),
    ("mistral", {"sliding_window": None}),
    ("mistral", {"sliding_window": 512}),
    ("olmo3", {"sliding_window": 512}),
    ("olmo3", {"sliding_window": 4096}),
    ("gemma3_text", {"sliding_window": 512, "head_dim": 64}),
    ("gemma3_text", {"sliding_window": 4096, "head_dim": 64}),
    ("gemma2", {"sliding_window": 512, "head_dim": 64}),
    ("cohere2", {"sliding_window": 512}),
)
WHOLE = ((8, 4096, 32, 8, 14336), (16, 2048, 32, 8, 8192), (6, 5120, 40, 40, 13824))


def steps(kind: str, more: dict[str, typing.Any]) -> dict[str, typing.Any]:
    config = transformers.AutoConfig.for_model(kind, **SHAPE, **more)
    with torch.device("cuda"):
        model = transformers.AutoModelForCausalLM.from_config(config).to(torch.bfloat16).eval()
    ids = torch.randint(5, 400, (1, PROMPT), device="cuda")
    found: dict[str, typing.Any] = {"kind": kind, "config": SHAPE | more, "prompt": PROMPT}
    with torch.no_grad():
        for name in ("new_ms", "known_ms"):
            cache = model(ids, use_cache=True, logits_to_keep=1).past_key_values
            one, took = ids[:, :1].clone(), []
            for _ in range(STEPS):
                torch.cuda.synchronize()
                start = time.perf_counter()
                model(one, past_key_values=cache, use_cache=True, logits_to_keep=1)
                torch.cuda.synchronize()
                took.append(round(1e3 * (time.perf_counter() - start), 2))
            found[name] = took
        kernels = matvec.kernels(lambda: model(one, past_key_values=cache, use_cache=True, logits_to_keep=1))
    return found | {"launches": sum(n for _, n, _ in kernels), "busy_us": round(sum(us for _, _, us in kernels), 1), "kernels": kernels[:10]}


def main() -> None:
    until = time.monotonic() + float(sys.argv[2] if len(sys.argv) > 2 else 200)
    with pathlib.Path(sys.argv[1]).open("w") as file:
        def put(run: typing.Callable[[], dict[str, typing.Any]], case: object) -> None:
            if time.monotonic() > until:
                return
            try:
                found = run()
            except Exception as error:  # the others are worth having
                found = {"case": str(case), "error": repr(error)[:200]}
            torch.cuda.empty_cache()
            file.write(json.dumps(found) + "\n")
            file.flush()

        for kind, more in CASES:
            put(lambda kind=kind, more=more: steps(kind, more), kind)
        for layers, *shape in WHOLE:
            for weights in ("int8", "int4", "bf16"):
                case = {"layers": layers, "vocab": 32000, "shape": shape, "experts": False, "batch": 1, "weights": weights, "mode": "reduce-overhead", "tuned": True}
                put(lambda case=case: matvec.step(case), case)


if __name__ == "__main__":
    main()
