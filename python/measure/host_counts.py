"""What Python and the dispatcher do in a pass of the models whose host time was measured: host_counts.py OUT FILE...

FILEs are host_rounds.jsonl, host_pace.jsonl, host_fresh.jsonl or host_depth.jsonl. Every model of theirs is built from its config and runs
once on a CPU without autograd: operators that reach the dispatcher, views among them apart; calls of Python's functions; modules entered. No
clock is read, so that every machine counts the same.
"""
from __future__ import annotations

import collections.abc
import json
import pathlib
import sys
import types
import typing

import torch
import transformers
from torch.utils._python_dispatch import TorchDispatchMode

TOKENS, PICTURES = 128, 2
VIEWS = {"view", "_reshape_alias", "transpose", "t", "permute", "slice", "select", "unsqueeze", "squeeze", "expand", "split", "alias", "detach"}
VIEWS |= {"_unsafe_view", "as_strided", "unbind", "split_with_sizes", "chunk", "lift_fresh"}
Row = dict[str, typing.Any]


class Operators(TorchDispatchMode):
    """How many operators arrive, and how many of them are views."""

    def __init__(self) -> None:
        super().__init__()
        self.views = self.others = 0

    def __torch_dispatch__(self, function: typing.Any, kinds: typing.Any, args: typing.Any = (), named: Row | None = None) -> typing.Any:
        if function.overloadpacket.__name__ in VIEWS:
            self.views += 1
        else:
            self.others += 1
        return function(*args, **(named or {}))


def python_calls(run: collections.abc.Callable[[], typing.Any]) -> int:
    calls = 0

    def seen(frame: types.FrameType, event: str, found: typing.Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(seen)
    try:
        run()
    finally:
        sys.setprofile(None)
    return calls


def counted(row: Row) -> Row:
    named = {key: value for key, value in row["config"].items() if not (key == "vocab_size" and value == 0)}
    made = transformers.AutoConfig.for_model(named.pop("model_type"), **named)
    model = getattr(transformers, f"AutoModelFor{row['head']}").from_config(made).to(torch.bfloat16).eval()
    inputs: Row = {"pixel_values": torch.randn(PICTURES, 3, 224, 224, dtype=torch.bfloat16)}
    if row["head"] != "ImageClassification":
        tokens = torch.randint(5, 1000, (1, TOKENS))
        inputs = {"input_ids": tokens}
        inputs |= {"labels": tokens} if row["head"] == "Seq2SeqLM" else {"use_cache": False} if row["head"] == "CausalLM" else {}
    entered: list[str] = []
    with torch.no_grad():
        model(**inputs)
        with Operators() as operators:
            model(**inputs)
        calls = python_calls(lambda: model(**inputs))
        for module in model.modules():
            module.register_forward_pre_hook(lambda module, _: entered.append(type(module).__name__))
        model(**inputs)
    return {"operators": operators.others, "views": operators.views, "calls": calls, "modules": len(entered)}


def main() -> None:
    with pathlib.Path(sys.argv[1]).open("w") as out:
        for path in map(pathlib.Path, sys.argv[2:]):
            for row in map(json.loads, path.read_text().splitlines()):
                if "infer_us" in row:
                    out.write(json.dumps({"file": path.stem, "name": row["name"], **counted(row)}) + "\n")
                    out.flush()


if __name__ == "__main__":
    main()
