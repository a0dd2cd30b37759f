"""Builds libforetell and the program with Meson and puts both into the wheel.

They go to ``foretell/_native``, where the package looks first. The wheel works with every Python 3 of the platform,
since the library is loaded by ctypes. On Linux the shared libraries that it needs beyond libc (jansson, zlib,
protobuf-c) are put beside it, where its run path looks: distributions' archives of them are not position-independent,
so they cannot be linked in. A source distribution carries the C sources under ``native/``.

``FORETELL_CROSS`` names a folder of ``scripts/cross_root``: the wheel is then for that processor, built by its cross
compiler, with that processor's libraries beside it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist
from setuptools.dist import Distribution

HERE = Path(__file__).resolve().parent
SUFFIX = "dylib" if sys.platform == "darwin" else "so"
CROSS = Path(os.environ["FORETELL_CROSS"]).resolve() if os.environ.get("FORETELL_CROSS") else None
# Those libraries, and the folders of /usr/share/doc where distributions keep their licences, which go with them.
COMPANIONS = {"libjansson.": "libjansson*", "libz.": "zlib1g*", "libprotobuf-c.": "libprotobuf-c1*"}
# What the library and the program are made of; a source distribution carries these.
SOURCES = (
    ("meson.build", "meson_options.txt", "LICENSE"),
    ("include", "src", "cli", "data", "bench", "scripts"),
)


def source_root() -> Path:
    for root in (HERE.parent, HERE / "native"):
        if (root / "meson.build").is_file() and (root / "include" / "foretell.h").is_file():
            return root
    sys.exit("setup.py: the C sources are neither beside python/ nor in native/")


def tool(name: str) -> list[str]:
    """A build tool of this environment (PEP 517 puts it there), or of the machine."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.is_file() else shutil.which(name)
    if not found:
        sys.exit(f"setup.py: {name} is needed to build libforetell (pip install {name})")
    return [found]


def run(line: list[str]) -> subprocess.CompletedProcess[str]:
    print("+", " ".join(line), flush=True)
    return subprocess.run(line, text=True, capture_output=True, check=False)


def fail(said: str) -> None:
    hint = ""
    if "not found" in said or "No such file" in said:
        hint = (
            "\nsetup.py: libforetell needs a C compiler, pkg-config and the headers of jansson and zlib "
            "(Debian: gcc pkg-config libjansson-dev zlib1g-dev; Fedora: gcc pkgconf jansson-devel zlib-devel; "
            "Homebrew: pkg-config jansson)"
        )
    sys.exit(said[-4000:] + hint)


def compiled(build: Path) -> None:
    line = [
        *tool("meson"),
        "setup",
        str(build),
        str(source_root()),
        "--buildtype=release",
        "-Dwerror=false",  # a compiler newer than ours may have new warnings
        "-Dtests=false",
        "-Dsimgrid=disabled",
        "-Dbundle=true",
        "-Dserver=disabled",  # libmicrohttpd brings TLS libraries that a wheel should not carry
    ]
    if CROSS:
        line += ["--cross-file", str(CROSS / "cross.ini")]
    elif sys.platform.startswith("linux"):
        line.append("-Dc_link_args=-Wl,-rpath,$ORIGIN")
        line.append("-Dc_args=-fno-asynchronous-unwind-tables")  # C unwinds nothing: a hundred kilobytes of a wheel
    for step in (line, [*tool("ninja"), "-C", str(build)]):
        done = run(step)
        if done.returncode:
            fail(done.stdout + done.stderr)


def processor() -> str:
    """Of the wheel: what Meson's description of the other machine says."""
    assert CROSS
    said = re.search(r"^cpu = '(\w+)'$", (CROSS / "cross.ini").read_text(), re.MULTILINE)
    return said.group(1) if said else sys.exit(f"setup.py: {CROSS}/cross.ini names no cpu")


def needed_beside(binary: Path) -> list[Path]:
    """Shared libraries that may be missing on another machine of this platform."""
    if CROSS:  # ldd would run it; what it names is looked for among the other processor's libraries
        told = run([f"{processor()}-linux-gnu-objdump", "-p", str(binary)]).stdout
        names = [name for name in re.findall(r"NEEDED +(\S+)", told) if name.startswith(tuple(COMPANIONS))]
        found = [next((CROSS / "root").glob(f"**/{name}"), None) for name in names]
        missing = [name for name, path in zip(names, found) if not path]
        return sys.exit(f"setup.py: not in {CROSS}: {', '.join(missing)}") if missing else [path for path in found if path]
    if not sys.platform.startswith("linux") or not shutil.which("ldd"):
        return []
    told = run(["ldd", str(binary)]).stdout.splitlines()
    paths = [line.split("=>")[1].split(" (")[0].strip() for line in told if "=> /" in line]
    return [Path(path) for path in paths if Path(path).name.startswith(tuple(COMPANIONS))]


def build_native(target: Path, build: Path) -> None:
    shutil.rmtree(build, ignore_errors=True)
    compiled(build)
    target.mkdir(parents=True, exist_ok=True)
    library = target / f"libforetell.{SUFFIX}"
    # Under its plain name: ctypes loads it by path, and wheels hold no links.
    shutil.copyfile((build / library.name).resolve(), library)
    shutil.copy2(build / "foretell", target / "foretell")
    strip = shutil.which(f"{processor()}-linux-gnu-strip" if CROSS else "strip")
    if strip and sys.platform != "darwin":
        subprocess.run([strip, "--strip-unneeded", str(library), str(target / "foretell")], check=False)
    for companion in needed_beside(library):
        shutil.copyfile(companion.resolve(), target / companion.name)
        folders = next(where for name, where in COMPANIONS.items() if companion.name.startswith(name))
        doc = CROSS / "root" / "usr/share/doc" if CROSS else Path("/usr/share/doc")
        for licence in sorted(doc.glob(f"{folders}/copyright"))[:1]:
            shutil.copyfile(licence, target / f"{companion.name}.copyright")


class BuildPackage(build_py):
    """The Python files, and what is compiled for them."""

    def run(self) -> None:
        shutil.rmtree(Path(self.build_lib) / "foretell", ignore_errors=True)  # a file deleted since stays deleted
        super().run()
        if self.editable_mode:  # the package then finds the tree's own build folder
            print("setup.py: editable: run make in the source tree; its build/ is used", flush=True)
            return
        page = source_root() / "build" / "web"  # `make web`: what python -m foretell web serves
        if (page / "index.html").is_file():
            shutil.copytree(page, Path(self.build_lib) / "foretell" / "_page")
        scratch = Path(self.get_finalized_command("build").build_temp).resolve() / "native"
        build_native(self.native(), scratch)

    def native(self) -> Path:
        return Path(self.build_lib) / "foretell" / "_native"

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        folders = () if self.editable_mode else (self.native(), self.native().with_name("_page"))
        ours = sorted(str(path) for folder in folders for path in folder.glob("*"))
        return super().get_outputs(include_bytecode) + ours


class Wheel(bdist_wheel):
    """Native, but for every Python 3: ``py3-none-<platform>``."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self) -> tuple[str, str, str]:
        return ("py3", "none", f"linux_{processor()}" if CROSS else super().get_tag()[2])


class SourceDistribution(sdist):
    """With the C sources, so that it can be built where the tree is not."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        root, native = source_root(), Path(base_dir) / "native"
        native.mkdir(parents=True, exist_ok=True)
        names, folders = SOURCES
        for name in names:
            shutil.copy2(root / name, native / name)
        for folder in folders:
            shutil.copytree(root / folder, native / folder, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))


class Native(Distribution):
    """Goes where platform files go."""

    def has_ext_modules(self) -> bool:
        return True


setup(distclass=Native, cmdclass={"build_py": BuildPackage, "bdist_wheel": Wheel, "sdist": SourceDistribution})
