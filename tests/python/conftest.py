"""What the tests share: the tree's own build, a wheel built beside them, Python without PyTorch."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(os.fspath(ROOT / "scripts"))
from neighbour import load  # noqa: E402, F401: scripts as modules, for tests of them

# What python/setup.py takes from the tree.
_SOURCES = ("meson.build", "meson_options.txt", "LICENSE", "include", "src", "cli", "data", "bench", "scripts")



def run(*line: str | os.PathLike[str], **more: Any) -> subprocess.CompletedProcess[str]:
    """A program, with what it printed."""
    return subprocess.run([os.fspath(each) for each in line], capture_output=True, text=True, check=False, **more)


@pytest.fixture(scope="session")
def program() -> Path:
    """The program that the package finds: that of the tree's build, unless the environment names another."""
    from foretell import _find

    return _find.program()


@pytest.fixture(scope="session")
def bare_python() -> str:
    """The Python that the environment was made from: it has no PyTorch."""
    python = str(getattr(sys, "_base_executable", sys.executable))
    assert run(python, "-I", "-c", "import torch", cwd="/").returncode != 0, f"{python} has PyTorch"
    return python


# -- the wheel ---------------------------------------------------------------------------------------------------------
# It takes a while to compile, so it is built beside the other tests, from a source distribution of a copy of the tree:
# once, by the first of pytest-xdist's workers, for all of them. How it is compiled is not what the tests ask, so it is
# not optimised (`make release-check` builds the one that is shipped).

_MAKE_WHEEL = """
import os, shutil, subprocess, sys
from setuptools import build_meta
os.makedirs("../dist")
name = build_meta.build_sdist("../dist")
shutil.unpack_archive("../dist/" + name, "../unpacked")
folder = "../unpacked/" + name.removesuffix(".tar.gz")
sys.exit(subprocess.call([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
                          "--disable-pip-version-check", "-w", "../wheel", folder]))
"""
_FOLDER = "FORETELL_TEST_WHEEL"  # where it is made: workers inherit it from the process that started them


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def pytest_configure(config: pytest.Config) -> None:
    if not _is_worker(config):
        os.environ[_FOLDER] = tempfile.mkdtemp(prefix="foretell-wheel-")


def pytest_unconfigure(config: pytest.Config) -> None:
    """The worker that builds may end before one that waits for it: whoever started them ends it."""
    if _is_worker(config):
        return
    folder = Path(os.environ.pop(_FOLDER))
    if (folder / "pid").exists() and not (folder / "status").exists():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(int((folder / "pid").read_text()), signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


# Examples of docstrings that want what only the environment of `make release-check` has; it runs them.
_ELSEWHERE = {"to_polars": "polars", "to_arrow": "pyarrow"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of the wheel come last."""
    items[:] = [item for item in items if _here(_ELSEWHERE.get(item.name.rpartition(".")[2]))]
    items.sort(key=lambda item: "wheel" in getattr(item, "fixturenames", ()))


def _here(module: str | None) -> bool:
    return module is None or importlib.util.find_spec(module) is not None


def copy_of_the_tree(tree: Path) -> Path:
    """What a build of the package needs; a build leaves files behind, which must not be in the tree itself."""
    tree.mkdir()
    for name in _SOURCES:
        (tree / name).symlink_to(ROOT / name)
    left_out = shutil.ignore_patterns("build", "*.egg-info", "__pycache__", "measure")
    shutil.copytree(ROOT / "python", tree / "python", ignore=left_out)
    return tree


def pytest_collection_finish(session: pytest.Session) -> None:
    first = not _is_worker(session.config) or os.environ["PYTEST_XDIST_WORKER"] == "gw0"
    wanted = any("wheel" in getattr(each, "fixturenames", ()) for each in session.items)
    if session.config.option.collectonly or not first or not wanted:
        return
    folder = Path(os.environ[_FOLDER])
    tree = copy_of_the_tree(folder / "tree")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"CFLAGS": "-O0"}
    with (folder / "said").open("w") as said:
        build = subprocess.Popen(
            ["bash", "-c", 'status=0; "$@" || status=$?; echo $status > ../../part && mv ../../part ../../status', "-",
             sys.executable, "-c", _MAKE_WHEEL],
            cwd=tree / "python",
            env=environment,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
    (folder / "pid").write_text(str(build.pid))


@pytest.fixture(scope="session")
def wheel() -> Path:
    """A wheel of this tree."""
    folder = Path(os.environ[_FOLDER])
    until = time.monotonic() + 1800  # only that a build which died ends too
    while not (folder / "status").exists():
        assert time.monotonic() < until, "the wheel's build does not end"
        time.sleep(0.2)
    assert (folder / "status").read_text() == "0\n", (folder / "said").read_text()
    (made,) = (folder / "tree" / "wheel").glob("*.whl")
    return made


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the wheel installed in it."""
    target = tmp_path_factory.mktemp("installed")
    done = run(
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        target,
        wheel,
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
    )
    assert done.returncode == 0, done.stderr
    yield target
