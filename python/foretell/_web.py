"""``python -m foretell web`` where the program has no server: the page's files on this machine, answered in the browser.

The wheel carries the page and the library as WebAssembly, so that files are all a browser needs; what only the program's
server does (``/api``, files of this machine, other machines) is refused with a sentence. Files are read at the start: no
path that comes from outside reaches the file system. The headers are those of ``cli/web_send.c``.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import http.server
import os
import signal
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .errors import NotFoundError

__all__ = ["main"]

_PAGE = Path(__file__).resolve().parent / "_page"  # the wheel puts it there
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".wasm": "application/wasm",
    ".svg": "image/svg+xml",
    ".gz": "application/gzip",
}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; "
    "connect-src 'self'; img-src 'self' data: blob:; style-src 'self'; font-src 'self'; manifest-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_HOSTS = ("localhost", "127.0.0.1", "[::1]")


class _File(NamedTuple):
    kind: str
    plain: bytes
    packed: bytes
    etag: str


def _read(folder: Path) -> dict[str, _File]:
    files = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if path.is_file():
            plain = path.read_bytes()
            packed = plain if path.suffix == ".gz" else gzip.compress(plain, 6)
            etag = f'"{hashlib.sha256(plain).hexdigest()[:16]}"'
            files[f"/{path.name}"] = _File(_TYPES.get(path.suffix, "application/octet-stream"), plain, packed, etag)
    if "/index.html" not in files:
        raise NotFoundError(f"the page is not in {folder}: `make web` builds it, --page names another folder")
    return {**files, "/": files["/index.html"]}


class _Handler(http.server.BaseHTTPRequestHandler):
    files: dict[str, _File] = {}
    protocol_version = "HTTP/1.1"
    timeout = 10  # seconds that a client may take

    def do_GET(self) -> None:
        host = self.headers.get("Host", "").rsplit(":", 1)[0] if "]" not in self.headers.get("Host", "") else "[::1]"
        file = self.files.get(self.path.split("?", 1)[0])
        if host not in _HOSTS:  # another site's name for this machine (DNS rebinding)
            self._send(403, "text/plain", b"this server is called localhost\n")
        elif not file:
            self._send(404, "text/plain", b"there is no such file here\n")
        elif file.etag in self.headers.get("If-None-Match", ""):
            self._send(304, file.kind, b"", file.etag)
        elif len(file.packed) < len(file.plain) and "gzip" in self.headers.get("Accept-Encoding", ""):
            self._send(200, file.kind, file.packed, file.etag, {"Content-Encoding": "gzip"})
        else:
            self._send(200, file.kind, file.plain, file.etag)

    do_HEAD = do_GET

    def _send(self, status: int, kind: str, body: bytes, etag: str = "", more: dict[str, str] | None = None) -> None:
        self.send_response(status)
        tag = {"ETag": etag, "Vary": "Accept-Encoding", "Cache-Control": "no-cache"} if etag else {}
        for name, value in {**_HEADERS, "Content-Type": kind, **tag, **(more or {})}.items():
            self.send_header(name, value)
        if status != 304:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing: requests are nobody's business."""


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def main(arguments: Sequence[str]) -> int:
    """Serves the page until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="foretell web", description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--port", type=int, default=8080, help="0: any that is free")
    parser.add_argument("--open", action="store_true", help="in the browser")
    parser.add_argument("--page", type=Path, default=os.environ.get("FORETELL_PAGE") or _PAGE, help="folder of its files")
    known, rest = parser.parse_known_args(arguments)
    if rest:
        print(
            f"foretell: {rest[0]} needs the program's own server, which this package does not carry: build the source tree "
            "with libmicrohttpd-dev, or leave it out and the page answers in the browser",
            file=sys.stderr,
        )
        return 2
    if not 0 <= known.port < 65536:
        print(f"foretell: --port takes a whole number from 0 to 65535, got {known.port}", file=sys.stderr)
        return 2
    _Handler.files = _read(Path(known.page))
    try:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", known.port), _Handler)
    except OSError as fault:
        print(f"foretell: cannot listen on port {known.port}: {fault.strerror}; --port takes another", file=sys.stderr)
        return 3
    url = f"http://127.0.0.1:{server.server_address[1]}/"
    print(url, flush=True)
    print("foretell: Ctrl-C ends it", file=sys.stderr)
    if known.open:
        webbrowser.open(url)
    signal.signal(signal.SIGTERM, _interrupt)  # shells start background jobs with Ctrl-C ignored
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
    return 0
