"""Forward passes and training steps of models under torch.compile and without: compiled.py CASES OUT [SECONDS]

CASES: a JSON line each with `request` (a config with its `model_type` or a net's name, `batch`, of texts `seq`, `dtype` bf16 or
amp_bf16), `tasks` and forecasts, as python/measure/compiled.jsonl has them. The model is compiled by the default mode, and hands out its
logits beside its loss; of a case that says `whole`, a function that hands out the loss alone. sdpa, random weights, no mask, fused AdamW
in `train`. Rows have the compiled pass and, under `eager`, the same one before it was compiled: the median of seven between CUDA events,
`busy_ms` the kernels' sum of one more pass under the profiler (the median of three), the allocator's peak. `graphs` counts what the
compiler made of the pass: 1 where it did not have to stop.
"""
from __future__ import annotations

import contextlib
import gc
import pathlib
import sys
import time
import typing

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "scripts")]

import architectures  # noqa: E402
import catalogue_nets  # noqa: E402
import nets  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from passes import Case, Run, busy_ms, every  # noqa: E402

PICTURES = {"vit": "ViTForImageClassification", "dinov2": "Dinov2ForImageClassification", "convnext": "ConvNextForImageClassification"}
NETS = catalogue_nets.MODELS | {
    "resnet-50": ("torchvision", "resnet50", {}, catalogue_nets.PICTURE, 224),
    "swin-tiny": ("transformers", "SwinForImageClassification", {"num_labels": 1000}, catalogue_nets.PICTURE, 224),
}


def net_of(request: Case) -> tuple[torch.nn.Module, dict[str, torch.Tensor], str]:
    """The module in fp32 or bf16, what it is given, and which library it is of."""
    model, low = request["model"], request["dtype"] == "bf16"
    if isinstance(model, str):
        library, kind, config, said, edge = NETS[model]
        net, given = nets.build(library, kind, config), nets.inputs(said, edge, request)
        given = given if low else {name: each.float() if each.is_floating_point() else each for name, each in given.items()}
    elif model["model_type"] in PICTURES:
        library, kind = "transformers", getattr(transformers, PICTURES[model["model_type"]])
        config = kind.config_class(**{key: value for key, value in model.items() if key != "model_type"})
        with torch.device("cuda"):
            net = kind._from_config(config, attn_implementation="sdpa" if kind._supports_sdpa else "eager", dtype=torch.bfloat16)
        given = {"pixel_values": torch.randn(request["batch"], 3, config.image_size, config.image_size, device="cuda", dtype=torch.bfloat16 if low else torch.float32),
                 "labels": torch.zeros(request["batch"], dtype=torch.long, device="cuda")}
    else:
        library, net = "transformers", architectures.build(model, "cuda")
        given = {name: each.to("cuda") for name, each in architectures.inputs(net.config, request).items()}
        given["labels"] = given.get("decoder_input_ids", given.get("input_ids"))
    return net if low else net.float(), given, library


def figures(run: Run, most: int) -> Case:
    """Four passes to warm up, seven timed, one for the peak, three under the profiler."""
    torch._C._cuda_clearCublasWorkspaces()
    for _ in range(4):
        run()
    torch.cuda.synchronize()
    times = []
    for _ in range(7):
        begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begun.record()
        run()
        ended.record()
        torch.cuda.synchronize()
        times.append(begun.elapsed_time(ended))
    torch.cuda.reset_peak_memory_stats()
    run()
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated()
    busy, kernels, longest = sorted((busy_ms(run, most) for _ in range(3)), key=lambda each: each[0])[1]
    row = {"ms": round(sorted(times)[3], 4), "busy_ms": round(busy, 4), "kernels": kernels, "peak_bytes": peak}
    return row | ({"by_kernel": longest} if most else {})


def measure(case: Case) -> typing.Iterator[Case]:
    for task in case["tasks"]:
        gc.collect()
        torch.cuda.empty_cache()
        torch._dynamo.reset()
        request = case["request"]
        net, given, library = net_of(request)
        net.train(task == "train")
        if task == "forward":
            given.pop("labels", None)
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-5, fused=True) if task == "train" else None

        def pass_of(called: torch.nn.Module) -> torch.Tensor:
            made = called(**given)
            if task == "forward":
                return made
            if library == "transformers" and "labels" in given:
                return made.loss
            made = made[0] if library == "transformers" else catalogue_nets.said(library, made)
            return torch.nn.functional.mse_loss(made, torch.zeros_like(made))

        def run_of(whole: typing.Callable[[], typing.Any]) -> Run:
            def run() -> None:
                with torch.autocast("cuda", torch.bfloat16) if request["dtype"] == "amp_bf16" else contextlib.nullcontext():
                    with torch.set_grad_enabled(task == "train"):
                        made = whole()
                if optimizer:
                    made.backward()
                    optimizer.step()
                    optimizer.zero_grad(set_to_none=True)
            return run

        eager = figures(run_of(lambda: pass_of(net)), 0)
        gc.collect()
        torch.cuda.empty_cache()
        torch._dynamo.utils.counters.clear()
        whole = case.get("whole", False)
        made = torch.compile((lambda: pass_of(net)) if whole else net)
        compiled = run_of(made if whole else lambda: pass_of(made))
        begun = time.perf_counter()
        compiled()
        torch.cuda.synchronize()
        seconds = time.perf_counter() - begun
        row = figures(compiled, 60)
        stats = torch._dynamo.utils.counters["stats"]
        yield {"request": {"task": task, "gpu": "h200_sxm", "attention": "sdpa", "execution": "compile", **request}, "class": type(net).__name__,
               "whole": whole, "parameters": sum(each.numel() for each in net.parameters()), "graphs": stats["unique_graphs"], "compile_s": round(seconds, 1),
               **{key: value for key, value in row.items() if key != "by_kernel"}, "eager": eager,
               "forecast": case.get("forecast", {}).get(task), "by_kernel": row["by_kernel"]}
        del net, given, optimizer, made, compiled


if __name__ == "__main__":
    every(measure, lambda case: str(case["request"]["model"])[:60])
