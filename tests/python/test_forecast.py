"""Questions and what is asked of the library for them; models in every form that users have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import ROOT, run

import foretell

GPU = "h100_sxm"


def refused(code: str, where: str | None = None) -> Any:
    class Refused:
        def __enter__(self) -> Refused:
            return self

        def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
            assert isinstance(error, foretell.Error), f"not refused: {error!r}"
            assert error.code == code, f"{error.code}: {error}"
            assert where is None or where in error.where, error.where
            assert error.message and "Traceback" not in error.message
            return True

    return Refused()


def bare(told: dict[str, Any]) -> dict[str, Any]:
    """Without what the program says about itself and the question."""
    return {key: value for key, value in told.items() if key not in ("request", "version")}


# -- the same as the program -----------------------------------------------------------------------------------------


def test_train_is_the_program_s(program: Path) -> None:
    line = [
        "train",
        "llama-3-8b",
        "--gpu",
        GPU,
        "--batch",
        "2",
        "--seq",
        "2048",
        "--recompute",
        "full",
        "--tp",
        "2",
        "--json",
    ]
    told = json.loads(run(program, *line).stdout)
    step = foretell.train("llama-3-8b", gpu=GPU, batch=2, seq=2048, recompute="full", tp=2)
    assert bare(step.to_dict()) == bare(told)


def test_infer_is_the_program_s(program: Path) -> None:
    line = [
        "infer",
        "llama-3-8b",
        "--gpu",
        GPU,
        "--batch",
        "1",
        "--batch",
        "8",
        "--seq",
        "512",
        "--isl",
        "256",
        "--json",
    ]
    told = json.loads(run(program, *line).stdout)
    answer = foretell.infer("llama-3-8b", gpu=GPU, batch=[1, 8], seq=512, isl=256)
    assert bare(answer.to_dict()) == bare(told) and answer.offline is not None and answer.offline.osl == 128


def test_infer_takes_quantised_and_split() -> None:
    plain = foretell.infer("llama-3-70b", gpu=GPU, batch=1, seq=1024, tp=8)
    small = foretell.infer("llama-3-70b", gpu=GPU, batch=1, seq=1024, tp=8, weights_dtype="int4")
    assert small.decode[0].tpot_ms < plain.decode[0].tpot_ms
    assert small.capacity.weights_bytes < 0.4 * plain.capacity.weights_bytes


def test_kernel_and_collective() -> None:
    eager = foretell.kernel("gemm", m=16, n=16, k=16, gpu=GPU, timing="op")
    assert eager.ms > foretell.kernel("gemm", m=16, n=16, k=16, gpu=GPU).ms
    backward = foretell.kernel("layernorm", rows=4096, cols=4096, gpu=GPU, pass_="bwd")
    assert backward.request["pass"] == "bwd"
    far = foretell.collective("all_reduce", bytes=2**30, ranks=64, gpu=GPU, cluster={"interconnect": "ib_ndr400"})
    assert far.busbw_gbps < foretell.collective("all_reduce", bytes=2**30, ranks=8, gpu=GPU).busbw_gbps


def test_compare() -> None:
    a = foretell.train("gpt2", gpu=GPU, batch=8, seq=1024)
    b = foretell.train("gpt2", gpu=GPU, batch=8, seq=1024, execution="compile", id="compiled")
    both = foretell.compare(a, b)
    assert both.asked["execution"] == [None, "compile"]
    second = both.answers[1]
    assert second.name == "compiled" and second.ms == pytest.approx(b.step_ms)
    assert sum(each.change_ms for each in second.causes) == pytest.approx(second.change_ms, rel=1e-3)
    assert second.kernels and "compiled" in str(both) and len(both.to_dataframe()) == len(second.causes)
    with refused("usage"):
        foretell.compare(a)
    with refused("usage", "names"):
        foretell.compare(a, b, names=["one"])
    with refused("wrong_type"):
        foretell.compare(a, 7)  # type: ignore[arg-type]


def test_predictor_is_chosen() -> None:
    sizes = {"m": 4096, "n": 4096, "k": 4096}
    learned, roofline = (foretell.kernel("gemm", gpu=GPU, predictor=each, **sizes) for each in (None, "roofline"))
    assert roofline.ms < learned.ms and roofline.source == "roofline"
    with refused("file"):
        foretell.train("gpt2", gpu=GPU, predictor="/no/such/file.ftp")
    with refused("file"):
        foretell.infer("gpt2", gpu=GPU, predictor=Path("/no/such/file.ftp"))
    with refused("file"):
        foretell.kernel("gemm", m=1, n=1, k=1, gpu=GPU, calibration="/no/such/file.ftcal")


def test_gpu_in_every_form(tmp_path: Path) -> None:
    spec = {"base": "h100_sxm", "name": "mine", "memory_gib": 40}
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(spec))
    by_path, by_object = foretell.train("gpt2", gpu=path), foretell.train("gpt2", gpu=spec)
    assert by_path.to_dict() == by_object.to_dict() and by_path.memory.capacity_bytes < 45 * 2**30
    assert foretell.infer("gpt2", gpu=spec, batch=1, seq=64).to_dataframe()["ms"].gt(0).all()
    with refused("wrong_type", "gpu"):
        foretell.train("gpt2", gpu=7)


def test_numbers_of_numpy_and_torch() -> None:
    import numpy

    plain = foretell.train("gpt2", gpu=GPU, batch=4, seq=512)
    assert foretell.train("gpt2", gpu=GPU, batch=numpy.int64(4), seq=torch.tensor(512), dtype=torch.bfloat16) == plain
    assert foretell.train("gpt2", gpu=GPU, batch=4, seq=512, dtype="bfloat16") == plain


# -- refusals --------------------------------------------------------------------------------------------------------


def test_refusals() -> None:
    with refused("unknown_name", "model"):
        foretell.train("lama-3-8b", gpu=GPU)
    with refused("unknown_name", "gpu"):
        foretell.train("gpt2", gpu="h1000")
    with refused("unknown_key", "bacth"):
        foretell.train("gpt2", gpu=GPU, bacth=4)  # type: ignore[call-arg]
    with refused("out_of_range", "batch"):
        foretell.train("gpt2", gpu=GPU, batch=0)
    with refused("wrong_type"):
        foretell.train("gpt2", gpu=GPU, batch="many")  # type: ignore[arg-type]
    with refused("out_of_range", "quantile"):
        foretell.train("gpt2", gpu=GPU, quantile=float("nan"))
    with refused("wrong_type", "loader.workers"):
        foretell.train("gpt2", gpu=GPU, loader={"workers": object()})
    with refused("wrong_type", "parallel"):
        foretell.train("gpt2", gpu=GPU, parallel=4)  # type: ignore[arg-type]
    with refused("unknown_name"):
        foretell.kernel("gem", m=1, n=1, k=1, gpu=GPU)
    with refused("unknown_key", "no_such_option"):
        foretell.infer("gpt2", gpu=GPU, no_such_option=3)
    with refused("unknown_name"):
        foretell.infer("lama", gpu=GPU)
    with refused("out_of_range", "errors"):
        foretell.batch([], errors="ignore")
    with refused("wrong_type", "model"):
        foretell.train(3.5, gpu=GPU)
    with refused("usage", "example_inputs"):
        foretell.train("gpt2", (torch.zeros(1),), gpu=GPU)
    with refused("usage", "task"):
        foretell.forecast("gpt2", gpu=GPU, task="kernel")
    with pytest.raises(TypeError, match="gpu"):
        foretell.train("gpt2")  # type: ignore[call-arg]


def test_errors_carry_code_and_place() -> None:
    import pickle

    with pytest.raises(foretell.Error) as caught:
        foretell.train("gpt2", gpu="h1000_sxm")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.code, again.where, again.message) == (caught.value.code, caught.value.where, caught.value.message)
    assert "h100_sxm" in str(again) and str(again).startswith("gpu: ")


def test_batch_goes_on() -> None:
    good = {"task": "kernel", "op": "softmax", "rows": 64, "cols": 64, "gpu": GPU}
    answers = foretell.batch(
        [good, {**good, "rows": -1}, good, {"task": "train", "model": "gpt2", "gpu": GPU}], threads=2
    )
    kinds = [type(each).__name__ for each in answers]
    assert kinds == ["Kernel", "Error", "Kernel", "Step"]
    assert foretell.batch([]) == ()
    wrong: list[Any] = [7, {**good, "gpu": 7}, {"task": "train", "model": 3.5, "gpu": GPU}, {**good, 8: 8}]
    odd = foretell.batch([good, *wrong])
    assert [getattr(each, "code", None) for each in odd] == [None] + ["wrong_type"] * 4
    with refused("out_of_range"):
        foretell.batch([good, {**good, "rows": -1}], errors="raise")


# -- Hugging Face ----------------------------------------------------------------------------------------------------

CATALOGUE = """gpt2 llama-3-8b qwen2.5-7b mistral-7b gemma-2-9b bert-large opt-6.7b bloom-7b1 phi-2 mixtral-8x7b
    vit-large-16 whisper-large-v3 mamba-2.8b""".split()


def _config(name: str) -> Any:
    import transformers

    known = json.loads((ROOT / "data" / "models" / f"{name}.json").read_text())
    document = known.get("config", known)
    return document, transformers.AutoConfig.for_model(**document)


def _known() -> list[str]:
    names = {each.name for each in foretell.models()}
    return [each for each in CATALOGUE if each in names]


@pytest.mark.parametrize("name", _known())
def test_config_object_is_its_catalogue_entry(name: str) -> None:
    """transformers fills a config with its defaults; the forecast stays the same."""
    document, config = _config(name)
    asked: dict[str, Any] = {"gpu": GPU, "task": "forward", "batch": 2, "seq": 256}
    by_name = foretell.forecast(name, **asked)
    by_config, by_dict = foretell.forecast(config, **asked), foretell.forecast(document, **asked)
    assert by_dict.to_dict() == by_name.to_dict()
    assert by_config.parameters == by_name.parameters
    assert by_config.step_ms == pytest.approx(by_name.step_ms, rel=1e-3)


def test_enough_configs() -> None:
    assert len(_known()) >= 10


def test_config_with_infinities() -> None:
    import transformers

    config = transformers.Mamba2Config(num_hidden_layers=2)  # its time_step_limit is (0, inf)
    assert foretell.forecast(config, gpu=GPU, task="forward", seq=256).step_ms > 0


def test_model_instance_by_its_config() -> None:
    """The head is that of the instance, not the one that the config would have by default."""
    import transformers

    config = transformers.BertConfig(num_hidden_layers=2)
    for kind in (transformers.BertModel, transformers.BertForSequenceClassification, transformers.BertForMaskedLM):
        with torch.device("meta"):
            model = kind(config)
        step = foretell.forecast(model, gpu=GPU, task="forward", seq=128)
        assert step.parameters == sum(each.numel() for each in model.parameters()), kind.__name__


def test_infer_of_configs_and_instances() -> None:
    import transformers

    config = transformers.LlamaConfig(
        num_hidden_layers=2, hidden_size=512, intermediate_size=1024, num_attention_heads=8
    )
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(config)
    answers = [foretell.infer(each, gpu=GPU, batch=1, seq=256) for each in (config, model, config.to_dict())]
    assert answers[0].decode == answers[1].decode == answers[2].decode and answers[0].model == "llama"


def test_folder_and_file(tmp_path: Path) -> None:
    document, _ = _config("gpt2")
    (tmp_path / "config.json").write_text(json.dumps(document))
    by_name = foretell.train("gpt2", gpu=GPU)
    assert foretell.train(tmp_path, gpu=GPU).to_dict() == by_name.to_dict()
    assert foretell.train(str(tmp_path / "config.json"), gpu=GPU).to_dict() == by_name.to_dict()


# -- modules ---------------------------------------------------------------------------------------------------------


class Block(torch.nn.Module):
    def __init__(self, width: int = 256) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, 4 * width)
        self.down = torch.nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


class Stack(torch.nn.Module):
    def __init__(self, layers: int = 4, width: int = 256) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(Block(width) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


@pytest.mark.old_torch
def test_any_module() -> None:
    model = Stack()
    x = torch.zeros(8, 128, 256)
    step = foretell.forecast(model, (x,), gpu=GPU, task="train", dtype="bf16")
    assert step.parameters == sum(each.numel() for each in model.parameters())
    products = 6 * 8 * 128 * 4 * 2 * 256 * 1024  # the first layer has no input gradient to compute
    assert products * 0.8 < step.executed_flops < products * 1.1
    assert step.backward_ms > step.forward_ms > 0
    forward = foretell.forecast(model, x, gpu=GPU, task="forward")
    assert forward.backward_ms == 0 and forward.step_ms < step.step_ms
    assert all(each.grad is None for each in model.parameters()), "capturing leaves the model alone"


@pytest.mark.old_torch
def test_module_on_the_meta_device() -> None:
    """70 billion parameters and no memory."""
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with torch.device("meta"):
        model = Stack(layers=8, width=16384)
        x = torch.zeros(1, 2048, 16384)
    step = foretell.train(model, (x,), gpu=GPU)
    assert step.parameters == sum(each.numel() for each in model.parameters()) > 17e9
    assert not step.fits
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**20  # KiB


def test_module_with_keywords_and_detail() -> None:
    step = foretell.train(Stack(2), {"x": torch.zeros(4, 64, 256)}, gpu=GPU, detail="kernels", optimizer="sgd")
    assert any(each.op == "linear" for each in step.kernels)


def test_module_without_inputs_or_config() -> None:
    with refused("missing", "example_inputs"):
        foretell.train(Stack(), gpu=GPU)


@pytest.mark.old_torch
def test_module_that_raises() -> None:
    class Raises(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("not today")

    with pytest.raises(foretell.ExportError, match="not today") as caught:
        foretell.train(Raises(), (torch.zeros(1),), gpu=GPU)
    assert "test_forecast.py" in str(caught.value)


@pytest.mark.old_torch
def test_wrong_example_shapes() -> None:
    with pytest.raises(foretell.ExportError):
        foretell.train(Stack(), (torch.zeros(8, 128, 255),), gpu=GPU)


@pytest.mark.old_torch
def test_saved_program(tmp_path: Path) -> None:
    path = tmp_path / "stack.pt2"
    x = torch.zeros(8, 128, 256)
    model = Stack()
    torch.export.save(torch.export.export(model, (x,)), path)
    step = foretell.forecast(path, gpu=GPU)
    assert step.parameters == sum(each.numel() for each in model.parameters())
    whole = foretell.forecast(model, (x,), gpu=GPU)
    assert step.step_ms == pytest.approx(whole.step_ms, rel=0.05)
    (tmp_path / "cut.pt2").write_bytes(path.read_bytes()[:5000])
    with pytest.raises(foretell.Error):
        foretell.forecast(tmp_path / "cut.pt2", gpu=GPU)


def test_exported_graph_is_asked_again() -> None:
    from foretell.export import export

    graph = export(Stack(), (torch.zeros(8, 128, 256),))
    a, b = (foretell.train(graph, gpu=gpu) for gpu in ("a100_sxm_80gb", GPU))
    assert a.parameters == b.parameters and a.step_ms > 0 < b.step_ms
    both = foretell.compare(a, b, names=["A100", "H100"])
    assert [each.name for each in both.answers] == ["A100", "H100"]
