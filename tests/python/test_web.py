"""``python -m foretell web`` as a wheel has it: files of the page over Python's own server."""

from __future__ import annotations

import gzip
import http.client
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def start(*arguments: str) -> subprocess.Popen[str]:
    code = "import sys; from foretell._web import main; sys.exit(main(sys.argv[1:]))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    return subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    page = tmp_path_factory.mktemp("page")
    (page / "index.html").write_text("<!doctype html><title>page</title>" + " " * 2000)
    (page / "foretell.wasm").write_bytes(b"\0asm" + bytes(5000))
    (page / "predictor.bin.gz").write_bytes(gzip.compress(os.urandom(2000)))
    server = start("--port", "0", "--page", str(page))
    assert server.stdout
    found = re.search(r":(\d+)/", server.stdout.readline())
    assert found
    yield int(found.group(1))
    server.send_signal(signal.SIGTERM)
    assert server.wait(3600) == 0


def ask(port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, dict(answer.getheaders()), body


def test_files_have_their_types_and_the_headers_of_the_program(port: int) -> None:
    policy = re.search(r'"default-src(.|\n)*?\}', (ROOT / "cli/web_send.c").read_text())
    assert policy
    wanted = "".join(re.findall(r'"([^"]*)"', policy.group(0)))
    for path, kind in {"/": "text/html; charset=utf-8", "/foretell.wasm": "application/wasm", "/predictor.bin.gz": "application/gzip"}.items():
        status, headers, body = ask(port, path)
        assert (status, headers["Content-Type"]) == (200, kind)
        assert headers["Content-Security-Policy"] == wanted
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert ask(port, path, If_None_Match=headers["ETag"])[0::2] == (304, b"")
        assert ask(port, path, "HEAD")[2] == b""
        packed = ask(port, path, Accept_Encoding="gzip")
        if not path.endswith(".gz"):
            assert packed[1]["Content-Encoding"] == "gzip" and gzip.decompress(packed[2]) == body


@pytest.mark.parametrize("path", ["/../setup.py", "/%2e%2e/setup.py", "/etc/passwd", "//etc/passwd", "/api/about"])
def test_only_the_page_is_there(port: int, path: str) -> None:
    assert ask(port, path)[0] == 404


def test_other_names_of_this_machine_are_refused(port: int) -> None:
    assert ask(port, "/", Host="evil.example")[0] == 403
    assert ask(port, "/", Host="localhost:99")[0] == 200


def test_what_needs_the_program_is_said(tmp_path: Path) -> None:
    server = start("--listen", "0.0.0.0")
    assert server.wait(3600) == 2
    assert server.stderr and "libmicrohttpd" in server.stderr.read()
    beyond = start("--port", "70000")
    assert beyond.wait(3600) == 2
    assert beyond.stderr and "from 0 to 65535" in beyond.stderr.read()
    bare = start("--page", str(tmp_path))
    assert bare.wait(3600) != 0
    assert bare.stderr and "make web" in bare.stderr.read()
