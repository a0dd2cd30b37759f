"""The package as it is installed: what the wheel holds, and that it needs nothing else."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import foretell
import pytest
from conftest import ROOT, copy_of_the_tree, run
from foretell import _find, _library

CLEAN = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}


def test_version_is_the_library_s() -> None:
    header = (ROOT / "include" / "foretell.h").read_text()
    assert f'#define FT_VERSION "{foretell.__version__}"' in header


def test_structs_agree_with_the_header() -> None:
    """ctypes believes what it is told: the two structs must be those of the headers."""
    header = "".join((ROOT / "include" / name).read_text() for name in ("foretell_types.h", "foretell.h"))
    for name, ours in (("ft_error", _library._Error), ("ft_options", _library._Options)):
        body = re.sub(
            r"/\*.*?\*/", "", re.search(rf"typedef struct {name} {{(.*?)}} {name};", header, re.S).group(1), flags=re.S
        )
        names = [
            re.sub(r"\[.*\]", "", each).strip(" *")
            for line in body.split(";")
            for each in re.sub(r"^\s*(const char \*|const void \*|ft_status|size_t|char|double|int)", "", line.strip()).split(",")
            if each.strip()
        ]
        told = [field[0] for field in ours._fields_]
        # A struct of ours may be longer than the library's: it reads what it knows.
        assert told[: len(names)] == names, name
    sizes = dict(re.findall(r"char (message|where)\[(\d+)\]", header))
    assert (_library._Error.message.size, _library._Error.where.size) == (int(sizes["message"]), int(sizes["where"]))


def test_environment_names_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORETELL_LIBRARY", str(tmp_path / "none.so"))
    with pytest.raises(foretell.NotFoundError, match="FORETELL_LIBRARY"):
        _find.library()
    monkeypatch.setenv("FORETELL_PROGRAM", str(tmp_path))
    with pytest.raises(foretell.NotFoundError, match="FORETELL_PROGRAM"):
        _find.program()


def test_a_file_that_is_no_library(tmp_path: Path) -> None:
    wrong = tmp_path / "libforetell.so"
    wrong.write_bytes(b"not a library")
    done = run(
        sys.executable, "-c", "import foretell; foretell.kernel('gemm', m=1, n=1, k=1, gpu='h100_sxm')",
        env={**os.environ, "FORETELL_LIBRARY": str(wrong)},
    )  # fmt: skip
    assert "NotFoundError" in done.stderr and "cannot load libforetell" in done.stderr


def test_another_library_is_refused() -> None:
    done = run(
        sys.executable, "-c", "import foretell; foretell.kernel('gemm', m=1, n=1, k=1, gpu='h100_sxm')",
        env={**os.environ, "FORETELL_LIBRARY": str(_a_system_library())},
    )  # fmt: skip
    assert "this is not libforetell" in done.stderr


def _a_system_library() -> Path:
    told = subprocess.run(["ldd", str(_find.library())], capture_output=True, text=True, check=True).stdout
    return Path(re.search(r"libjansson\S* => (\S+)", told).group(1))


def test_importing_needs_neither_torch_nor_a_library(bare_python: str, tmp_path: Path) -> None:
    """A name, a config and a request are answered without PyTorch; only capturing needs it."""
    script = """
import sys, foretell
assert "torch" not in sys.modules and "pandas" not in sys.modules
foretell.train("gpt2", gpu="h100_sxm")
assert "torch" not in sys.modules
for ask in (lambda: foretell.forecast("model.pt2", gpu="h100_sxm"), lambda: foretell.record(gpu="h100_sxm")):
    try:
        ask()
    except foretell.TorchMissingError as error:
        assert isinstance(error, ImportError) and error.code == "torch_missing" and "PyTorch is needed" in str(error)
    else:
        raise SystemExit("not refused")
try:
    foretell.export
except foretell.TorchMissingError:
    pass
else:
    raise SystemExit("not refused")
assert not hasattr(foretell, "exports")
try:
    foretell.gpus().to_dataframe()
except foretell.Error as error:
    assert error.code == "pandas_missing", error
print("fine")
"""
    ours = {key: value for key, value in os.environ.items() if key.startswith("FORETELL_")}
    environment = {**CLEAN, **ours, "PYTHONPATH": str(ROOT / "python")}
    done = run(bare_python, "-c", script, env=environment, cwd=tmp_path)
    assert done.stdout == "fine\n", done.stderr


def test_threads_ask_at_once() -> None:
    """One context, many threads: every answer is the one that a single thread gets."""
    asks = [
        {"task": "kernel", "op": "gemm", "m": 128 * m, "n": 4096, "k": 4096, "gpu": "h100_sxm"} for m in range(1, 33)
    ]
    alone = [_library.answer(ask) for ask in asks]
    together: list[list[dict]] = [[] for _ in range(8)]

    def work(at: int) -> None:
        together[at] = [_library.answer(ask) for ask in asks]

    threads = [threading.Thread(target=work, args=(at,)) for at in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert all(answers == alone for answers in together)


def test_types_check() -> None:
    """The package says it is typed, and every public function is annotated."""
    import inspect

    assert (ROOT / "python" / "foretell" / "py.typed").is_file()
    for name in foretell.__all__:
        thing = getattr(foretell, name)
        if inspect.isfunction(thing):
            signature = inspect.signature(thing)
            assert signature.return_annotation is not inspect.Signature.empty, name
            assert all(each.annotation is not inspect.Parameter.empty for each in signature.parameters.values()), name
            assert thing.__doc__ and ">>> " in thing.__doc__, f"{name} has no example"


def test_missing_headers_are_named(tmp_path: Path) -> None:
    """Who lacks jansson reads which packages to install, not a log alone."""
    tree = copy_of_the_tree(tmp_path / "tree")
    done = run(
        sys.executable,
        "setup.py",
        "build_py",
        "--build-lib",
        tmp_path / "lib",
        cwd=tree / "python",
        env={**CLEAN, "PKG_CONFIG_LIBDIR": str(tmp_path), "PKG_CONFIG_PATH": str(tmp_path)},
    )
    assert done.returncode != 0 and "libjansson-dev" in done.stderr, done.stderr[-500:]


# -- the wheel ---------------------------------------------------------------------------------------------------------


def test_wheel_is_for_every_python_of_the_platform(wheel: Path) -> None:
    name, version, python, abi, platform = wheel.stem.split("-")
    assert (name, version, python, abi) == ("foretell", foretell.__version__, "py3", "none")
    assert platform != "any"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(next(each for each in names if each.endswith("METADATA"))).decode()
    assert {"foretell/py.typed", "foretell/_native/foretell", "foretell/export/__init__.py"} <= set(names)
    assert not [each for each in names if "measure" in each or "tests" in each]
    carried = [each for each in names if each.startswith("foretell/_native/lib") and "libforetell" not in each]
    if Path("/usr/share/doc/libjansson4/copyright").exists():  # Debian keeps licences where setup.py looks for them
        assert {each for each in carried if each.endswith(".copyright")} == {
            each + ".copyright" for each in carried if not each.endswith(".copyright")
        }
    required = [line for line in metadata.splitlines() if line.startswith("Requires-Dist") and "extra ==" not in line]
    assert required == []


def test_installed_wheel_stands_alone(installed: Path, bare_python: str, tmp_path: Path) -> None:
    """Without the tree, without PyTorch, from another folder."""
    script = """
import foretell, json
step = foretell.train("llama-3-8b", gpu="h100_sxm", batch=1, seq=2048)
print(json.dumps([foretell.__file__, step.to_dict(), len(foretell.gpus())]))
"""
    done = run(bare_python, "-c", script, env={**CLEAN, "PYTHONPATH": str(installed)}, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    path, step, gpus = json.loads(done.stdout)
    assert Path(path).is_relative_to(installed)
    assert step == foretell.train("llama-3-8b", gpu="h100_sxm", batch=1, seq=2048).to_dict()
    assert gpus == len(foretell.gpus())


def test_installed_wheel_needs_no_library_of_the_machine(installed: Path) -> None:
    native = installed / "foretell" / "_native"
    for binary in (native / "libforetell.so", native / "foretell"):
        told = run("ldd", binary).stdout
        for line in told.splitlines():
            name = Path(line.split()[0]).name
            if not re.match(r"(linux-vdso|linux-gate|ld-linux|libc\.|libm\.|libpthread\.|libdl\.|librt\.)", name):
                assert str(native) in line, line


def test_installed_command(installed: Path, bare_python: str, tmp_path: Path) -> None:
    environment = {**CLEAN, "PYTHONPATH": str(installed)}
    line = ["kernel", "gemm", "-m", "64", "-n", "64", "-k", "64", "--gpu", "h100_sxm", "--json"]
    done = run(bare_python, "-m", "foretell", *line, env=environment, cwd=tmp_path)
    assert json.loads(done.stdout)["ok"] is True, done.stderr
    script = installed / "bin" / "foretell"
    assert json.loads(run(sys.executable, script, *line, env=environment, cwd=tmp_path).stdout)["ok"] is True
