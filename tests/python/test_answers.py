"""Answers as dataclasses: nothing is lost, nothing can be changed, and what is shown is true and safe."""

from __future__ import annotations

import base64
import dataclasses
import pickle
import re
import xml.dom.minidom
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from conftest import run

import foretell
from foretell._picture import Picture
from foretell.answers import Step
from foretell.answers.collection import Collection

TRAIN = {"task": "train", "model": "gpt2", "gpu": "h100_sxm", "batch": 4, "seq": 512}
REQUESTS: list[dict[str, Any]] = [
    {**TRAIN, "detail": "kernels", "advice": True, "techniques": True, "loader": {"workers": 1, "worker_ms": 2}},
    {**TRAIN, "model": "llama-3-8b", "parallel": {"tp": 8, "pp": 4, "dp": 2}, "detail": "layers"},
    {**TRAIN, "model": "llama-3-70b", "seq": 8192},  # does not fit
    {**TRAIN, "tokens": 1e9, "parallel": {"gpus": 2}},  # planned first
    {**TRAIN, "task": "memory"},
    {**TRAIN, "task": "decode", "model": "llama-3-8b"},
    {**TRAIN, "task": "prefill", "model": "llama-3-8b"},
    {"task": "kernel", "op": "gemm", "m": 4096, "n": 50257, "k": 768, "gpu": "h200_sxm"},
    {"task": "collective", "op": "all_reduce", "bytes": 1e8, "ranks": 8, "gpu": "h100_sxm"},
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda each: f"{each['task']} {each.get('model', each.get('op'))}")
def test_nothing_is_lost(request_: dict[str, Any]) -> None:
    (answer,) = foretell.batch([request_], errors="raise")
    assert answer.to_dict() == dict(answer.raw) and answer.request == request_
    assert not answer.extra, f"keys without a field: {list(answer.extra)}"
    for field in dataclasses.fields(answer):
        value = getattr(answer, field.name)
        if field.name in answer.raw and not dataclasses.is_dataclass(value) and not isinstance(value, tuple):
            assert value == answer.raw[field.name]
    assert type(answer).from_dict(answer.to_dict()) == answer
    assert pickle.loads(pickle.dumps(answer)) == answer


def test_parts_are_typed() -> None:
    step = foretell.train("gpt2", gpu="h100_sxm", batch=4, seq=512, detail="kernels", advice=True)
    assert isinstance(step.memory, foretell.Memory) and step.memory.peak_bytes > 0
    assert isinstance(step.regime, foretell.Regime) and step.regime.bound == "overhead"
    assert all(isinstance(each, foretell.KernelRow) for each in step.kernels) and len(step.kernels) > 20
    assert step.advice[0].saves_ms >= step.advice[-1].saves_ms > 0
    assert sum(each.total_ms for each in step.kernels) == pytest.approx(step.busy_ms, rel=0.01)


def test_pictures_are_counted_as_pictures() -> None:
    def rate(model: str, **more: int) -> str:
        shown = str(foretell.train(model, gpu="h100_sxm", batch=8, **more))
        return next(line for line in shown.splitlines() if "rate" in line)

    assert "images/s" in rate("resnet-50") and "images/s" in rate("vit-b-16")
    assert "tokens/s" in rate("gpt2") and "tokens/s" in rate("gpt2", seq=1)


def test_unknown_keys_are_kept() -> None:
    step = Step.from_dict({"ok": True, "step_ms": 1.0, "new_key": 7, "memory": {"peak_bytes": 3, "newer": [1]}})
    assert step.extra == {"new_key": 7} and step["new_key"] == 7
    assert step.memory is not None and step.memory.extra == {"newer": [1]}


def test_answers_are_frozen() -> None:
    step = foretell.train("gpt2", gpu="h100_sxm")
    with pytest.raises(dataclasses.FrozenInstanceError):
        step.step_ms = 0.0  # type: ignore[misc]
    step.to_dict()["memory"]["peak_bytes"] = 0
    assert step.raw["memory"]["peak_bytes"] > 0


class _Page(HTMLParser):
    VOID = {"br", "img"}

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.pictures: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attrs:
            drawn = tag == "img" and name == "src" and str(value).startswith("data:image/svg+xml;base64,")
            assert not name.startswith("on") and (drawn or name not in ("src", "href")), f"{tag} {name}={value}"
            if drawn:
                self.pictures.append(base64.b64decode(str(value).partition(",")[2]).decode())

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data + " "


def _parsed(html: str) -> _Page:
    page = _Page()
    page.feed(html)
    page.close()
    assert page.open == []
    assert not page.tags & {"script", "link", "iframe", "svg"} and "http" not in html and "url(" not in html
    for picture in page.pictures:
        xml.dom.minidom.parseString(picture)
        assert "<script" not in picture and "href" not in picture
    return page


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda each: f"{each['task']} {each.get('model', each.get('op'))}")
def test_shown_as_text_and_html(request_: dict[str, Any]) -> None:
    (answer,) = foretell.batch([request_], errors="raise")
    text, page = str(answer), _parsed(answer._repr_html_())
    assert "nan" not in text.lower() and "None" not in text and "inf " not in text
    # The same figures in both.
    for word in [each for each in text.replace("…", " ").split() if any(char.isdigit() for char in each)]:
        assert word.strip("():,") in page.text, word
    assert max(len(line) for line in text.splitlines()) < 250


def test_html_is_escaped() -> None:
    evil = '<img src=x onerror="alert(1)"> & "quotes"'
    step = Step.from_dict(
        {
            "ok": True,
            "step_ms": 1.0,
            "warnings": [evil],
            "kernels": [{"name": evil, "op": "x", "total_ms": 1.0, "ms": 1.0}],
            "advice": [{"change": evil, "saves_ms": 1.0, "why": evil}],
        },
        request={"model": evil, "gpu": {"name": evil}},
    )
    page = _parsed(step._repr_html_())
    assert page.text.count(evil) >= 5


def test_html_takes_the_page_s_colours() -> None:
    """Dark or light is the notebook's business: no background, no text colour of its own."""
    html = foretell.train("gpt2", gpu="h100_sxm")._repr_html_()
    assert "color:inherit" in html and "background:transparent" in html
    assert "color:#000" not in html and "background:#fff" not in html and "color:white" not in html


def test_text_of_a_step() -> None:
    text = str(foretell.train("llama-3-8b", gpu="h100_sxm", batch=1, seq=2048))
    assert text.startswith("llama-3-8b · train · h100_sxm · bf16 · batch 1 · seq 2048\n")
    for word in ("tokens/s per GPU", "MFU", "activations", "fits", "8.03 B", "compute"):
        assert word in text


def test_text_says_what_does_not_fit() -> None:
    step = foretell.train("llama-3-70b", gpu="h100_sxm", batch=1, seq=2048)
    assert not step.fits and "does not fit" in str(step)


def test_data_frames() -> None:
    step = foretell.train("gpt2", gpu="h100_sxm", batch=4, seq=512, detail="kernels")
    table = step.to_dataframe()
    assert len(table) == len(step.kernels) and {"name", "op", "total_ms", "phase"} <= set(table.columns)
    assert step.to_dataframe("summary")["memory.peak_bytes"][0] == step.memory.peak_bytes
    with pytest.raises(foretell.Error, match="detail"):
        step.to_dataframe("layers")
    with pytest.raises(foretell.Error, match="summary"):
        step.to_dataframe("everything")  # type: ignore[arg-type]
    layers = foretell.train("gpt2", gpu="h100_sxm", detail="layers").to_dataframe()
    assert "activations_bytes" in layers.columns
    infer = foretell.infer("llama-3-8b", gpu="h100_sxm", batch=[1, 4], seq=[512, 2048]).to_dataframe()
    assert len(infer) == 8 and set(infer["phase"]) == {"prefill", "decode"}


def test_pictures() -> None:
    """What a notebook shows is what the program draws, of the step that was answered and of no other."""
    step = foretell.train("gpt2", gpu="h100_sxm", batch=4, seq=512, predictor="roofline", detail="kernels")
    page = _parsed(step._repr_html_())
    assert page.pictures == [step.picture("timeline"), step.picture("memory")]
    shown = pickle.loads(pickle.dumps(step))._repr_html_()
    assert shown == step._repr_html_() != foretell.train("gpt2", gpu="h100_sxm", batch=4, seq=512)._repr_html_()
    asked = foretell.train("gpt2", gpu="h100_sxm", batch=4, seq=512, pictures=["classes"])
    assert list(asked.pictures) == ["classes"] and asked.picture("classes") == asked.pictures["classes"]
    swept = foretell.sweep({"tp": [1, 2]}, "gpt2", gpu=["h100_sxm", "a100_sxm_80gb"], seq=512)
    alone = foretell.train("gpt2", gpu="a100_sxm_80gb", seq=512, tp=2)
    assert [each.request["gpu"] for each in swept] == ["h100_sxm"] * 2 + ["a100_sxm_80gb"] * 2
    assert swept[3].step_ms == alone.step_ms and swept[3].picture("memory") == alone.picture("memory")
    assert len(_parsed(foretell.train("llama-3-8b", gpu="h100_sxm", pp=4, dp=2)._repr_html_()).pictures) == 3
    assert len(_parsed(foretell.forecast("gpt2", gpu="h100_sxm", task="memory")._repr_html_()).pictures) == 1
    with pytest.raises(foretell.Error, match="no pipeline"):
        step.picture("pipeline")
    with pytest.raises(foretell.Error, match='"timeline"'):
        step.picture("time")


def test_pictures_of_elsewhere() -> None:
    """An answer whose model is not here shows its figures."""
    step = foretell.Step.from_dict({"ok": True, "step_ms": 1.0}, request={"task": "train", "model": "gone/config.json"})
    assert _parsed(step._repr_html_()).pictures == [] and "1 ms" in step._repr_html_()
    assert _parsed(foretell.Step.from_dict({"ok": True, "step_ms": 1.0})._repr_html_()).pictures == []


def _points(picture: str) -> dict[tuple[str, float], float]:
    """What the marks of curves say, by curve and place; the program rounds to four digits."""
    said = re.findall(r"<title>([^<]*), \w+ ([\d.e+]+): ([\d.e+-]+) [^<]*</title>", picture)
    return {(name, float(x)): float(y) for name, x, y in said}


def _drawn_by(program: Path, folder: Path, *line: str) -> Picture:
    path = folder / "picture.svg"
    done = run(program, *line, "--svg", path)
    assert done.returncode == 0, done.stderr
    return Picture(path.read_text())


def _alike(one: str, other: str) -> bool:
    """The same words at the same marks: places and figures are drawn from an answer's six digits."""
    a, b = (re.findall(r"<(?:title|desc)[^>]*>[^<]*|<text [^>]*>[^<]*|data-picture=\S+", each) for each in (one, other))
    return [re.sub(r"[\d.]+", "", each) for each in a] == [re.sub(r"[\d.]+", "", each) for each in b]


def test_pictures_of_a_kernel(program: Path, tmp_path: Path) -> None:
    """Under its roofs, as the program draws it and with the predictor that was asked."""
    line = ["kernel", "gemm", "-m", "4096", "-n", "50257", "-k", "768", "--gpu", "h200_sxm"]
    for predictor in (None, "roofline"):
        kernel = foretell.kernel("gemm", m=4096, n=50257, k=768, gpu="h200_sxm", predictor=predictor)
        (shown,) = _parsed(kernel._repr_html_()).pictures
        assert shown == kernel.picture() == kernel.picture("roofline")
        assert shown == _drawn_by(program, tmp_path, *line, *(["--predictor", predictor] if predictor else []))
        assert kernel.picture().heading == "Roofline" and "gemm" in shown
        (time,) = re.findall(r": ([\d.]+) ms in all", shown)
        assert float(time) == pytest.approx(kernel.ms, rel=6e-3)
    with pytest.raises(foretell.Error, match="no timeline to draw; there is roofline"):
        kernel.picture("timeline")
    assert _parsed(foretell.collective("all_reduce", bytes=1e8, ranks=8, gpu="h100_sxm")._repr_html_()).pictures == []


def test_pictures_of_a_staircase(program: Path, tmp_path: Path) -> None:
    line = ["kernel", "gemm", "-m", "512", "-k", "1024", "--gpu", "h100_sxm"]
    for over in ("n=64:1024:64", "n=64:1024:x2"):
        stairs = foretell.sweep(over, gpu="h100_sxm", of="kernel", op="gemm", m=512, k=1024)
        (shown,) = _parsed(stairs._repr_html_()).pictures
        assert Picture(shown).heading == "Time over the range"
        assert _alike(shown, _drawn_by(program, tmp_path, *line, "--sweep", over)) and "band" in shown
        expected = {("h100_sxm", each.request["n"]): each.ms for each in stairs}
        assert _points(shown) == pytest.approx(expected, rel=1e-3) and len(expected) == len(stairs) > 4
    both = foretell.sweep("n=64:256:64", gpu=["h100_sxm", "l4"], of="kernel", op="gemm", m=512, k=1024)
    (shown,) = _parsed(both._repr_html_()).pictures
    assert _points(shown)["l4", 256] == pytest.approx(both["l4 n=256"].ms, rel=1e-3) and '"band' not in shown
    # No size, two sizes, the same size twice, something that is no kernel: nothing to draw.
    ask = {"task": "kernel", "op": "gemm", "m": 64, "n": 64, "k": 64, "gpu": "l4"}
    for other in ({"dtype": "fp32"}, {"m": 128, "n": 128}, {"n": 128}, {}, {"gpu": "h100_sxm"}, {"n": 0}, TRAIN):
        assert _parsed(foretell.batch([ask, {**ask, **other}, ask])._repr_html_()).pictures == []
    assert _parsed(foretell.batch([])._repr_html_()).pictures == []


def test_pictures_of_scaling(program: Path, tmp_path: Path) -> None:
    scale = foretell.scale("llama-3-8b", gpu="h100_sxm", gpus=64, tp=8, global_batch=64)
    (shown,) = _parsed(scale._repr_html_()).pictures
    assert shown == scale.picture("scaling") and scale.picture().heading == "Tokens per second and GPU over GPUs"
    line = ["scale", "llama-3-8b", "--gpu", "h100_sxm", "--gpus", "64", "--tp", "8", "--global-batch-size", "64"]
    assert _alike(shown, _drawn_by(program, tmp_path, *line, "--dtype", "bf16"))
    weak = {("weak: the batch grows with the GPUs", each.gpus): each.tokens_per_s_per_gpu for each in scale.weak}
    strong = {("strong: the batch stays", each.gpus): each.tokens_per_s_per_gpu for each in scale.strong}
    assert _points(shown) == pytest.approx({**weak, **strong}, rel=1e-3) and weak and strong
    # From a file, without its request: the figures are there.
    assert _parsed(foretell.Scale.from_dict(scale.to_dict())._repr_html_()).pictures == [shown]
    large = foretell.scale("llama-3-70b", gpu="h100_sxm", gpus=16)
    assert not large.weak[0].fits and "rings: does not fit" in large.picture() and "does not fit" not in shown


def test_pictures_of_inference(program: Path, tmp_path: Path) -> None:
    """Times over batches, a curve for each length; what does not fit has no speed."""
    infer = foretell.infer("llama-3-8b", gpu="h100_sxm", batch=[1, 8, 4096], seq=[512, 2048])
    page = _parsed(infer._repr_html_())
    assert page.pictures == [infer.picture("steps"), infer.picture("prefills")]
    headings = [Picture(each).heading for each in page.pictures]
    assert headings == ["Time per output token", "Time to the first token"] and all(each in page.text for each in headings)
    for picture, cells in zip(page.pictures, (infer.decode, infer.prefill), strict=True):
        expected = {(f"{each.seq} tokens", each.batch): each.ms for each in cells if each.fits}
        assert _points(picture) == pytest.approx(expected, rel=1e-3) and 4 <= len(expected) < len(cells)
    line = ["infer", "llama-3-8b", "--gpu", "h100_sxm", "-b", "1", "-b", "8", "-b", "4096", "--seq", "512", "--seq", "2048"]
    drawn, rates = _drawn_by(program, tmp_path, *line), infer.picture("rates")
    assert rates.heading == drawn.heading == "Generated tokens per second"
    assert _points(rates) == pytest.approx(_points(drawn), rel=1e-3)
    images = foretell.infer("resnet-50", gpu="h100_sxm", batch=[1, 64])
    (shown,) = _parsed(images._repr_html_()).pictures
    assert Picture(shown).heading == "Time of a forward pass" and "images/s" in images.picture("rates")
    assert _points(shown) == pytest.approx({("images", each.batch): each.ms for each in images.forward}, rel=1e-3)


def test_nothing_to_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    """One point is no curve; an answer of elsewhere, or without the library, shows its figures."""
    one = foretell.infer("llama-3-8b", gpu="h100_sxm", batch=1, seq=512)
    assert _parsed(one._repr_html_()).pictures == [] and "512" in one._repr_html_()
    with pytest.raises(foretell.Error, match="no picture to draw"):
        one.picture()
    assert _parsed(foretell.scale("gpt2", gpu="h100_sxm", gpus=8)._repr_html_()).pictures == []
    for kind in (foretell.Infer, foretell.Kernel, foretell.Scale):
        assert _parsed(kind.from_dict({"ok": True})._repr_html_()).pictures == []
    gone = foretell.Kernel.from_dict({"ok": True, "ms": 1.0}, request={"task": "kernel", "op": "gemm", "gpu": "gone.json"})
    assert _parsed(gone._repr_html_()).pictures == [] and "1 ms" in gone._repr_html_()
    curves = [{"gpus": gpus, "tokens_per_s_per_gpu": 5.0} for gpus in (1, 2)]
    bare = foretell.Scale.from_dict({"ok": True, "weak": curves})
    assert len(_parsed(bare._repr_html_()).pictures) == 1

    def refuse(*_: Any) -> None:
        raise foretell.NotFoundError("no library")

    monkeypatch.setattr("foretell._library.context", refuse)
    assert _parsed(bare._repr_html_()).pictures == []


def test_collections() -> None:
    asks = [{**TRAIN, "id": f"b{batch}", "batch": batch} for batch in (1, 2, 4)]
    answers = foretell.batch([*asks, {**TRAIN, "gpu": "h1000", "id": "wrong"}])
    assert isinstance(answers, Collection) and len(answers) == 4
    assert answers["b2"].id == "b2" and isinstance(answers[-1], foretell.Error)
    assert isinstance(answers[:2], Collection) and len(answers[:2]) == 2
    table = answers.to_dataframe()
    assert list(table["batch"][:3]) == [1, 2, 4] and "h1000" in table["error"][3]
    assert table["step_ms"][:3].is_monotonic_increasing
    assert "b4" in str(answers) and "<table>" in answers._repr_html_()
    with pytest.raises(KeyError):
        answers["b3"]


def test_catalogue() -> None:
    gpus, models = foretell.gpus(), foretell.models()
    assert gpus["h100_sxm"].peak_tflops["bf16"] == pytest.approx(989.4)
    assert models["llama-3-8b"].parameters == 8030261248
    assert len(gpus) >= 40 and len(models) >= 150 and gpus is foretell.gpus()
    with pytest.raises(KeyError, match="there are h100_nvl, h100_pcie, h100_sxm"):
        gpus["H100"]
    assert "qwen3-8b" in [model.name for model in foretell.models("qwen3*8b")]
    assert foretell.train("gpt2", gpu=gpus["h100_sxm"]) == foretell.train("gpt2", gpu="h100_sxm")
