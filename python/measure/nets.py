"""Forward passes, and forward with backward, of nets that scripts/catalogue_nets.py builds: nets.py CASES OUT [SECONDS]

CASES: a JSON line each with `request` (a model's name, `batch`, and of texts `seq`) and `tasks`, as python/measure/catalogue_nets.jsonl
has them with their forecasts. bf16, eager, random weights, channels first, no optimizer; what follows a detector's heads is left out
in inference, too, and the loss is the graph's: the mean square of all results side by side, of transformers' nets of the first. Figures as in
architectures.py. A folder `vendor` beside this file is searched last, for libraries that are not installed.
"""

from __future__ import annotations

import gc
import pathlib
import sys
import typing

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "scripts")]
sys.path.append(str(HERE / "vendor"))

import catalogue_nets  # noqa: E402
import torch  # noqa: E402
from passes import Case, every, measured  # noqa: E402


def build(library: str, kind: str, config: Case) -> torch.nn.Module:
    """On the device, in bf16; weights are random, since only times are asked."""
    if library == "transformers":
        import transformers

        made = getattr(transformers, kind)
        with torch.device("cuda"):
            return made(made.config_class(**config)).to(torch.bfloat16)
    net = catalogue_nets.built(library, kind, config).to(torch.bfloat16).to_empty(device="cuda")
    for value in [*net.parameters(), *net.buffers()]:
        value.data.normal_(0, 0.02) if value.is_floating_point() else value.data.zero_()
    return net


def inputs(said: Case, edge: int, request: Case) -> dict[str, torch.Tensor]:
    given = {}
    for name, shape in said.items():
        kinds = [each for each in shape if isinstance(each, str) and hasattr(torch, each)]
        sizes = [request["batch"] if each == "b" else request["seq"] if each == "s" else edge if each == 0 else each for each in shape if each not in kinds]
        kind = getattr(torch, kinds[0]) if kinds else torch.bfloat16
        given[name] = torch.randn(sizes, device="cuda", dtype=kind) if kind.is_floating_point else torch.ones(sizes, device="cuda", dtype=kind)
    return given


def leave_out_boxes(net: torch.nn.Module) -> None:
    """The heads of ultralytics make boxes of what they say in inference: they are left to say it."""
    for module in net.modules():
        if type(module).__name__ == "Detect":
            module.training = True


def measure(case: Case) -> typing.Iterator[Case]:
    gc.collect()
    torch.cuda.empty_cache()
    request = case["request"]
    library, kind, config, said, edge = catalogue_nets.MODELS[request["model"]]
    net, given = build(library, kind, config), inputs(said, edge, request)
    count = sum(each.numel() for each in net.parameters())

    def forward() -> None:
        leave_out_boxes(net)
        with torch.no_grad():
            net(**given)

    def train() -> None:
        made = net(**given)
        made = made[0] if library == "transformers" else catalogue_nets.said(library, made)
        torch.nn.functional.mse_loss(made, torch.zeros_like(made)).backward()
        net.zero_grad(set_to_none=True)

    for task in case["tasks"]:
        row = measured(net, task, forward if task == "forward" else train, 60 if case.get("by_kernel") else 0)
        row = {key: value for key, value in row.items() if key != "by_kernel" or value}
        foreseen = case.get("forecast", {}).get(task, {})
        yield {"class": f"{library}.{kind}", "request": {"task": task, "gpu": "h200_sxm", "dtype": "bf16", "attention": "sdpa", **request},
               "task": task, "parameters": count, **row,
               **{name: foreseen[key] for name, key in (("forecast_ms", "busy_ms"), ("forecast_bytes", "peak_bytes")) if key in foreseen}}  # fmt: skip


if __name__ == "__main__":
    every(measure, lambda case: case["request"]["model"])
