"""What has no effect is said: every key of every study, and thirty options at the three front ends, as an option where one was typed.

A study takes the keys of a step beside its own. Each is given here, with every word it has or a few numbers: where none of
them changes the answer, a warning must say so, and where one does, none may. Steps themselves are tried in
tests/unit/request_effects.c, against requests of many kinds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import foretell
import pytest
from conftest import run

LLAMA = {"model": "llama-3.2-1b", "gpu": "h100_sxm"}
LOAD = {**LLAMA, "isl": 128, "osl": 16}
GIVEN = {"max_num_seqs": 64, "max_num_batched_tokens": 2048}
BASES: dict[str, list[dict[str, Any]]] = {
    "kernel": [
        {"op": "gemm", "m": 512, "n": 512, "k": 512, "gpu": "h100_sxm"},
        {"op": "attention", "gpu": "h100_sxm", "batch": 2, "heads": 16, "q_len": 1, "kv_len": 1024, "head_dim": 64},
        {"op": "mla", "gpu": "h100_sxm", "batch": 2, "heads": 16, "q_len": 1, "kv_len": 1024},
        {"op": "mla", "gpu": "h100_sxm", "batch": 2, "heads": 16, "q_len": 512, "kv_len": 1024},
        {"op": "softmax", "gpu": "h100_sxm", "rows": 64, "cols": 64},
        {"op": "embedding", "gpu": "h100_sxm", "rows": 64, "cols": 64, "pass": "bwd"},
        {"op": "conv2d", "gpu": "h100_sxm", "n": 2, "c": 64, "h": 32, "w": 32, "k": 64, "r": 3, "pad": 1},
        {"op": "moe", "gpu": "h100_sxm", "tokens": 64, "hidden": 512, "inter": 512, "topk": 2, "experts": 8},
        {"op": "optimizer", "name": "adamw", "gpu": "h100_sxm", "params": 1000000},
        {"op": "elementwise", "name": "add", "gpu": "h100_sxm", "numel": 4096},
        {"op": "quantize", "gpu": "h100_sxm", "rows": 64, "cols": 64},
    ],
    "collective": [
        {"op": "all_reduce", "ranks": 4, "bytes": 1e8, "gpu": "h100_sxm"},
        {"op": "all_reduce", "ranks": 16, "bytes": 1e8, "gpu": "h100_sxm"},
        {"op": "send_recv", "ranks": 2, "bytes": 1e8, "gpu": "l4"},
    ],
    "infer": [{**LLAMA, "batch": [1], "seq": [512]}, {"model": "resnet-50", "gpu": "h100_sxm", "batch": [1]}],
    "largest": [{"gpu": "h100_sxm"}, {"gpu": "h100_sxm", "use": "infer"}],
    "scale": [LLAMA],
    # Two degrees are enough to find what waits for one, and few layouts are soon forecast.
    "plan": [{**LLAMA, "gpus": 4, "global_batch": 8, "search": {"tp": [1, 2], "pp": [1, 2], "cp": 1, "batch": 1}}],
    "choose": [{**LLAMA, "gpus": 4, "global_batch": 8, "tokens": 1e9, "search": {"tp": [1, 2], "pp": [1, 2], "cp": 1, "batch": 1}}],
    "serve": [
        {**LOAD, "concurrency": 4, "requests": 16},
        {**LOAD, "rate": 8, "requests": 16},
        {**LOAD, "concurrency": 4, "requests": 16, "parallel": {"tp": 2}},
        {**LOAD, "rate": 8, "requests": 16, "disaggregated": {"prefill": {"workers": 1}, "decode": {"workers": 1, "tp": 2}}},
    ],
    # Settings that are given are not searched: a way to serve is soon found.
    "plan_serve": [{**LOAD, **GIVEN, "gpus": 2, "rate": 2, "search": {"tp": 2}, "slo": {"ttft_ms": 500}}],
    "choose_serve": [{**LOAD, **GIVEN, "gpus": 1, "rate": 2, "slo": {"ttft_ms": 500}}],
}
# Parts of an answer that repeat the request.
ECHOES = ("warnings", "request", "parallel", "cluster", "stack", "understood")
# Of a plan: the training step to ask for next, and how long it was looked for.
ECHOES_INSIDE = ("request", "search_ms")
# What decides among layouts of which only the best are shown, or of which a framework runs one kind.
OF_OTHER_LAYOUTS = {"execution", "master_weights", "optimizer_in_backward", "parallel.sp", "parallel.expert_overlap"}
# Values that only happen to give the same answer: of parts that are one thing together, of a load that never waits, of a
# model whose engine has no recipe and whose prompts fit into one iteration; a ResNet lies as it is asked to by default.
OF_A_LIGHT_LOAD = {"settings", "chunked_prefill", "scheduling", "max_num_seqs", "cluster.gpus_per_node"}  # the usual node, said
OF_FEW_WAYS = OF_A_LIGHT_LOAD | {"routing", "gpu_memory_utilization", "cluster.nodes", "top"}
HAPPEN = {
    "serve": OF_A_LIGHT_LOAD | {"advice"},  # none is better than that
    "plan_serve": OF_FEW_WAYS,
    "choose_serve": OF_FEW_WAYS,
    "infer": {"layout", "expandable_segments"},  # what a step reserves decides whether it fits, at the edge alone
    "scale": {"expandable_segments"},
    "collective": {"cluster.gpus_per_node", "cluster.nodes"},  # a node of two or more for two ranks; as many as they fill
    "largest": {"master_weights"},  # on, unless it is said otherwise
    "plan": OF_OTHER_LAYOUTS,
    "choose": OF_OTHER_LAYOUTS | {"expandable_segments", "recompute_layers", "recompute_modules", "parallel.schedule", "parallel.tp_overlap",
                                  "parallel.overlap_p2p", "cluster.nodes", "allow",  # one layout of all is told of
                                  "deadline_days"},  # kept by far
}
SECTIONS_AS_ONE = ("loader", "lora")  # warned of as a whole, or a part that needs another


@pytest.fixture(scope="module")
def schema(program: Path) -> dict[str, Any]:
    return json.loads(run(program, "schema").stdout)["$defs"]


def resolved(schema: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in part:
        part = schema[part["$ref"].rsplit("/", 1)[1]]
    return part


def values(schema: dict[str, Any], part: dict[str, Any]) -> Iterator[Any]:
    """Some that are not the default."""
    part = resolved(schema, part)
    for one in part.get("anyOf", []):
        yield from values(schema, one)
    kinds = part.get("type", [])
    kinds = kinds if isinstance(kinds, list) else [kinds]
    tried: list[Any] = []
    if "enum" in part:
        tried = part["enum"]
    elif "boolean" in kinds:
        tried = [True, False]
    elif "integer" in kinds:
        tried = [2, 3, 8]
    elif "number" in kinds:
        tried = [0.8, 2, 8]
    elif "array" in kinds:
        tried = [[value] for value in values(schema, part.get("items", {}))]
    for value in tried:
        inside = not isinstance(value, (int, float)) or part.get("minimum", 0) <= value <= part.get("maximum", 1e99)
        if value != part.get("default") and inside:
            yield value


def trials(schema: dict[str, Any], task: str, base: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every key that the base leaves out, and every key of its sections, with the request that gives it."""
    for key, part in schema["request." + task]["properties"].items():
        if key in base or key in ("id", "task", *SECTIONS_AS_ONE):
            continue
        sections = [resolved(schema, one) for one in (part, *part.get("anyOf", []))]
        section = next((one for one in sections if one.get("type") == "object" and "properties" in one), None)
        if section is None:
            for value in values(schema, part):
                yield key, {**base, key: value}
        else:
            for inner, inner_part in section["properties"].items():
                for value in values(schema, inner_part):
                    yield f"{key}.{inner}", {**base, key: {inner: value}}


def without(part: Any, keys: tuple[str, ...]) -> Any:
    if isinstance(part, dict):
        return {key: without(value, keys) for key, value in part.items() if key not in keys}
    return [without(each, keys) for each in part] if isinstance(part, list) else part


def bare(answer: dict[str, Any]) -> dict[str, Any]:
    return without({key: value for key, value in answer.items() if key not in ECHOES}, ECHOES_INSIDE)


@pytest.mark.parametrize("task", BASES)
def test_studies_say_what_has_no_effect(schema: dict[str, Any], program: Path, task: str) -> None:
    wrong = []
    for base in BASES[task]:
        base = {"task": task, **base}
        asked = [("", base), *trials(schema, task, base)]
        lines = run(program, "batch", "-j", "1", input="".join(json.dumps(each) + "\n" for _, each in asked)).stdout.splitlines()
        answers = [json.loads(line) for line in lines]
        assert answers[0]["ok"] and "has no effect" not in str(answers[0].get("warnings")), answers[0]
        silent: dict[str, int] = {}
        acting: set[str] = set()
        for (key, _), answer in zip(asked[1:], answers[1:], strict=True):
            if not answer["ok"]:
                continue  # refused: said too
            name = key.rsplit(".", 1)[-1]
            warned = any(line.startswith(f'"{name}" has no effect: ') for line in answer.get("warnings", []))
            same = bare(answer) == bare(answers[0])
            if not same and warned:
                wrong.append(f"{base}: {key} is warned of, and changes the answer")
            silent[key] = silent.get(key, 0) + (same and not warned)
            acting |= set() if same else {key}
        wrong += [f"{base}: {key} changes nothing, and nothing is said"
                  for key, count in silent.items() if count and key not in acting and key not in HAPPEN.get(task, ())]
    assert not wrong, "\n".join(wrong)


# -- thirty options, at the three front ends ----------------------------------------------------------------------------

RESNET = {"model": "resnet-50", "gpu": "h100_sxm"}
OPTIONS = [
    (LLAMA, "--zero=3", {"parallel": {"zero": 3}}),
    (LLAMA, "--sp", {"parallel": {"sp": True}}),
    (LLAMA, "--schedule=gpipe", {"parallel": {"schedule": "gpipe"}}),
    (LLAMA, "--no-overlap", {"parallel": {"overlap": False}}),
    (LLAMA, "--tp-overlap", {"parallel": {"tp_overlap": True}}),
    (LLAMA, "--deal=rest", {"parallel": {"deal": "rest"}}),
    (LLAMA, "--cp-kind=ulysses", {"parallel": {"cp_kind": "ulysses"}}),
    (LLAMA, "--etp=1", {"parallel": {"etp": 1}}),
    (LLAMA, "--expert-skew=2", {"parallel": {"expert_skew": 2}}),
    (LLAMA, "--expert-dispatch=once", {"parallel": {"expert_dispatch": "once"}}),
    (LLAMA, "--expert-capacity=1.5", {"parallel": {"expert_capacity": 1.5}}),
    (LLAMA, "--bucket-mib=100", {"parallel": {"bucket_mib": 100}}),
    (LLAMA, "--reduce-dtype=fp32", {"parallel": {"reduce_dtype": "fp32"}}),
    (LLAMA, "--gather-dtype=fp8", {"parallel": {"gather_dtype": "fp8"}}),
    (LLAMA, "--gather=parameter", {"parallel": {"gather": "parameter"}}),
    (LLAMA, "--interconnect=ib_ndr400", {"cluster": {"interconnect": "ib_ndr400"}}),
    (LLAMA, "--gpus-per-node=4", {"cluster": {"gpus_per_node": 4}}),
    (LLAMA, "--topology=fat_tree", {"cluster": {"topology": "fat_tree"}}),
    (LLAMA, "--oversubscription=2", {"cluster": {"oversubscription": 2}}),
    (LLAMA, "--nccl=2.20", {"cluster": {"nccl": "2.20"}}),
    (LLAMA, "--layout=nchw", {"layout": "nchw"}),
    (LLAMA, "--compile-scope=layers", {"compile_scope": "layers"}),
    (LLAMA, "--fusions=plain", {"fusions": "plain"}),
    ({**LLAMA, "execution": "fused"}, "--recompute-modules=moe", {"recompute_modules": ["moe"]}),
    (LLAMA, "--recompute-layers=4", {"recompute_layers": 4}),
    (LLAMA, "--host-gbps=20", {"host_gbps": 20}),
    (LLAMA, "--rollout-tokens=128", {"rollout_tokens": 128}),
    (RESNET, "--attention=eager", {"attention": "eager"}),
    (RESNET, "--seq=512", {"seq": 512}),
    (RESNET, "--loss=narrow", {"loss": "narrow"}),
]


@pytest.mark.parametrize(("base", "flag", "keys"), OPTIONS, ids=[flag for _, flag, _ in OPTIONS])
def test_options_without_effect_are_said_at_every_front_end(
    program: Path, base: dict[str, str], flag: str, keys: dict[str, Any]
) -> None:
    inner = next(iter(keys.values()))
    name = next(iter(inner if isinstance(inner, dict) else keys))
    flags = [f"--{key}={value}" for key, value in base.items() if key != "model"]
    line = [program, "train", base["model"], *flags, "--advice", "none", flag]
    start = f'"{name}" has no effect: '
    shown, typed = run(*line), "--" + flag.partition("=")[0].removeprefix("--").removeprefix("no-")
    assert shown.returncode == 0 and f"{base['model']}: warning: {typed} has no effect: " in shown.stderr, shown.stderr
    answered = json.loads(run(*line, "--json").stdout)
    batched = json.loads(run(program, "batch", input=json.dumps({"task": "train", **base, **keys})).stdout)
    step = foretell.train(**base, **keys)
    for warnings in (answered["warnings"], batched["warnings"], step.warnings):
        assert any(each.startswith(start) for each in warnings), warnings
    assert f"warning: {start}" in str(step)


SERVED = {"isl": 128, "osl": 16, "slo": {"ttft_ms": 500.0}, **GIVEN}
SERVED_FLAGS = ["--task=serve", "--isl=128", "--osl=16", "--slo=ttft=500ms", "--max-num-seqs=64", "--max-num-batched-tokens=2048"]
SEARCHES = {
    "plan_serve": ({"gpus": 1, "rate": 2.0, **SERVED}, ["--gpus=1", "--rate=2", *SERVED_FLAGS]),
    "choose_serve": ({"gpus": 1, "rate": 2.0, **SERVED}, ["--gpus=1", "--rate=2", *SERVED_FLAGS]),
    "plan": ({"gpus": 4, "global_batch": 8}, ["--gpus=4", "--global-batch-size=8"]),
    "choose": ({"gpus": 4, "global_batch": 8, "tokens": 1e9}, ["--gpus=4", "--global-batch-size=8", "--tokens=1e9"]),
}


@pytest.mark.parametrize("task", SEARCHES)
def test_searches_say_it_at_every_front_end(program: Path, task: str) -> None:
    keys, flags = SEARCHES[task]
    degrees = {"tp": 1, "pp": 1} | ({} if task.endswith("_serve") else {"cp": 1})
    line = [program, task.removesuffix("_serve"), LLAMA["model"], f"--gpu={LLAMA['gpu']}", *flags,
            *(f"--{each}=1" for each in degrees), "--compile-scope=layers", "--expert-skew=2"]
    asked = {**LLAMA, **keys, "compile_scope": "layers", "parallel": {**degrees, "expert_skew": 2}}
    shown = run(*line)
    answered = json.loads(run(*line, "--json").stdout)["warnings"]
    batched = json.loads(run(program, "batch", input=json.dumps({"task": task, **asked})).stdout)["warnings"]
    found = getattr(foretell, task)(**asked)
    for name in ("compile_scope", "expert_skew"):
        start = f'"{name}" has no effect: '
        assert f"{LLAMA['model']}: warning: --{name.replace('_', '-')} has no effect: " in shown.stderr, shown.stderr
        for warnings in (answered, batched, found.warnings):
            assert any(each.startswith(start) for each in warnings), warnings


# -- sweeps and comparisons ---------------------------------------------------------------------------------------------

# What is swept, keys beside it, and which have no effect: at all points, or at those that do not repeat the default.
SWEPT: list[tuple[str, list[Any], dict[str, Any], list[str], set[str]]] = [
    ("zero", [0, 1, 2, 3], {"parallel": {"sp": True}}, ["--sp"], {"zero", "sp"}),
    ("zero", [1, 2, 3], {"parallel": {"dp": 2}}, ["--dp=2"], set()),
    ("tp", [1, 2], {"parallel": {"sp": True}, "compile_scope": "layers"}, ["--sp", "--compile-scope=layers"], {"compile_scope"}),
    ("oversubscription", [2, 4], {}, [], {"oversubscription"}),
    ("batch", [1, 2], {"layout": "nchw"}, ["--layout=nchw"], {"layout"}),
]


@pytest.mark.parametrize(("key", "points", "keys", "flags", "idle"), SWEPT)
def test_sweeps_say_what_has_no_effect_at_any_point(
    program: Path, key: str, points: list[Any], keys: dict[str, Any], flags: list[str], idle: set[str]
) -> None:
    step = "x2" if key in ("tp", "oversubscription") else "1"
    line = [program, "train", LLAMA["model"], f"--gpu={LLAMA['gpu']}", "--advice=none", *flags, f"--sweep={key}={points[0]}:{points[-1]}:{step}"]
    asked = {"task": "sweep", **LLAMA, **keys, "over": {key: points}}
    answered = json.loads(run(program, "batch", input=json.dumps(asked)).stdout)
    assert answered["ok"] and len(answered["answers"]) == len(points), answered
    swept = foretell.sweep({key: points}, **LLAMA, **keys)
    for shown in (run(*line), run(*line, "--csv")):
        assert shown.returncode == 0
        flagged = {each.partition("warning: --")[2].partition(" has no effect: ")[0] for each in shown.stderr.splitlines()}
        assert {each.replace("-", "_") for each in flagged - {""}} == idle, shown.stderr
    for warnings in (answered.get("warnings", []), swept.warnings):
        assert {each.split('"')[1] for each in warnings if "has no effect: " in each} == idle, warnings
    for each in swept.warnings:
        assert f"warning: {each}" in str(swept)


def test_a_sweep_of_kernels_says_it(program: Path) -> None:
    keys = {"op": "gemm", "m": 64, "k": 64, "gpu": "h100_sxm", "bias": True}
    start = '"bias" has no effect: '
    line = [program, "kernel", "gemm", "-m", "64", "-k", "64", "--bias", "--gpu=h100_sxm", "--sweep=n=64:128:64"]
    assert "gemm: warning: --bias has no effect: " in run(*line).stderr
    answered = json.loads(run(program, "batch", input=json.dumps({"task": "sweep", "of": "kernel", **keys, "sweep": "n=64:128:64"})).stdout)
    assert [each for each in answered["warnings"] if each.startswith(start)], answered


COMPARED: list[tuple[dict[str, Any], dict[str, Any], set[str]]] = [
    ({"layout": "nchw"}, {"layout": "nchw", "batch": 2}, {'"layout" has no effect: '}),
    ({"compile_scope": "layers"}, {"execution": "compile"}, {'a: "compile_scope" has no effect: '}),
    ({"parallel": {"sp": True}}, {"parallel": {"sp": True, "tp": 2}}, {'a: "sp" has no effect: '}),
    ({"pictures": ["layers"]}, {"detail": "kernels"}, {'a: "pictures" has no effect: ', 'b: "detail" has no effect: '}),
    ({}, {"batch": 2}, set()),
]


@pytest.mark.parametrize(("one", "other", "idle"), COMPARED)
def test_comparisons_say_what_has_no_effect(program: Path, tmp_path: Path, one: dict[str, Any], other: dict[str, Any], idle: set[str]) -> None:
    asks = [{"task": "train", **LLAMA, **one}, {"task": "train", **LLAMA, **other}]
    for name, ask in zip("ab", asks, strict=True):
        (tmp_path / name).write_text(json.dumps(ask))
    shown = run(program, "compare", "a", "b", cwd=tmp_path)
    assert shown.returncode == 0
    answered = json.loads(run(program, "compare", "a", "b", "--json", cwd=tmp_path).stdout).get("warnings", [])
    batched = json.loads(run(program, "batch", input=json.dumps({"task": "compare", "requests": asks, "names": ["a", "b"]})).stdout)
    found = foretell.compare(*asks, names=["a", "b"])
    said = [line.removeprefix("foretell: warning: ") for line in shown.stderr.splitlines()]
    for warnings in (said, answered, batched.get("warnings", []), found.warnings):
        assert {each.partition("effect: ")[0] + "effect: " for each in warnings} == idle, warnings


def test_a_comparison_of_grids_is_asked_without_kernels(program: Path) -> None:
    asks = [{"task": "infer", **LLAMA, "batch": [1], "seq": [512]}, {"task": "infer", **LLAMA, "batch": [1], "seq": [512], "dtype": "fp16"}]
    answered = json.loads(run(program, "batch", input=json.dumps({"task": "compare", "requests": asks})).stdout)
    assert answered["ok"] and "warnings" not in answered, answered
