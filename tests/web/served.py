"""A server of `foretell web` that tests ask over plain sockets, and a small page for it to serve."""
import gzip
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess

KERNEL = '{"task":"kernel","op":"gemm","m":512,"n":512,"k":512,"gpu":"h100_sxm"}'
JSON = {"Content-Type": "application/json"}
TIMEOUT_S = 1.0
HANG_S = 600  # nothing here is about how fast the machine is: this ends only what hangs
TOKEN = "a-secret-of-enough-letters"


class Server:
    def __init__(self, program, *options, page=None):
        command = [program, "web", "--port", "0", *options] + (["--page", page] if page else [])
        # Memory that was freed comes back to the system's books soon under a sanitizer, too.
        environment = {**os.environ, "ASAN_OPTIONS": "quarantine_size_mb=4:thread_local_quarantine_size_kb=64"}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(self.process.stderr.read())
        self.url = line.strip()
        self.port = int(re.search(r":(\d+)/", self.url).group(1))

    def ask(self, method, path, body=None, headers=None):
        """Status, headers and body; the connection is closed behind it."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANG_S)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def post(self, path, body, **headers):
        return self.ask("POST", path, body, {**JSON, **{k.replace("_", "-"): v for k, v in headers.items()}})

    def raw(self, data, read=True):
        """Bytes as they are; what comes back until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=HANG_S) as s:
            s.sendall(data)
            if not read:
                return b""
            out = b""
            try:
                while chunk := s.recv(65536):
                    out += chunk
            except ConnectionResetError:
                pass
            return out

    def memory_kib(self):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1])

    def cpu_s(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self, which=signal.SIGINT):
        self.process.send_signal(which)
        out, err = self.process.communicate(timeout=HANG_S)
        return self.process.returncode, out, err


def expect(what, wanted, got):
    if got != wanted:
        raise AssertionError(f"{what}: {got!r}, expected {wanted!r}")


def error_code(body):
    return json.loads(body)["error"]["code"]


def status_of(raw):
    return int(raw.split(b" ", 2)[1]) if raw.startswith(b"HTTP/") else None


def page_folder(folder):
    page = pathlib.Path(folder) / "page"
    page.mkdir()
    (page / "index.html").write_text('<!doctype html><meta name="served-by" content="files"><title>page</title>' + " " * 2000)
    (page / "app.js").write_text("export {};\n" * 500)
    (page / "style.css").write_text("body{}\n" * 300)
    (page / "foretell.wasm").write_bytes(b"\0asm" + bytes(5000))
    (page / "predictor.bin.gz").write_bytes(gzip.compress(os.urandom(4000)))
    return str(page)
