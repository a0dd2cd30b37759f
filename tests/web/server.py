#!/usr/bin/env python3
"""The server of `foretell web`, from outside, over plain sockets: server.py PROGRAM [--load N] [--clients N] [--print]

Whoever may not ask is refused with the right status, whoever sends nonsense is told so, whoever dawdles is left, and the
server goes on answering after each; answers are those of `foretell batch`; many of them leave its memory as it was.
Prints TAP. --load is how many requests the last test asks; --print adds answers per second and the 99th percentile.
"""
import argparse
import gzip
import http.client
import json
import os
import pathlib
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import hostile  # beside this file, as these
import requests as made
from clients import load
from served import HANG_S, JSON, KERNEL, TIMEOUT_S, TOKEN, Server, error_code, expect, page_folder, status_of


def test_page(s, _):
    types = {"/": "text/html; charset=utf-8", "/app.js": "text/javascript; charset=utf-8", "/style.css": "text/css; charset=utf-8",
             "/foretell.wasm": "application/wasm", "/predictor.bin.gz": "application/gzip"}
    for path, kind in types.items():
        status, headers, body = s.ask("GET", path)
        expect(path, (200, kind), (status, headers["Content-Type"]))
        expect(path + " packed unasked", None, headers.get("Content-Encoding"))
        policy = headers["Content-Security-Policy"]
        if "unsafe-inline" in policy or "default-src 'none'" not in policy or "frame-ancestors 'none'" not in policy:
            raise AssertionError(f"policy {policy}")
        expect("sniffing", "nosniff", headers["X-Content-Type-Options"])
        zipped = s.ask("GET", path, headers={"Accept-Encoding": "br, gzip;q=0.8"})
        if path != "/predictor.bin.gz":
            expect(path + " gzip", "gzip", zipped[1].get("Content-Encoding"))
            expect(path + " unpacked", body, gzip.decompress(zipped[2]))
            if zipped[1]["ETag"] == headers["ETag"]:
                raise AssertionError("packed and plain have one ETag")
        refused = s.ask("GET", path, headers={"Accept-Encoding": "gzip;q=0"})
        expect(path + " gzip refused", None, refused[1].get("Content-Encoding"))
        again = s.ask("GET", path, headers={"If-None-Match": f'"x", {headers["ETag"]}'})
        expect(path + " known", (304, b""), (again[0], again[2]))
        head = s.ask("HEAD", path)
        expect(path + " HEAD", (200, b"", str(len(body))), (head[0], head[2], head[1]["Content-Length"]))


def test_says_who_serves(s, _):
    """The page asks a server only where its own text says that there is one."""
    body = s.ask("GET", "/")[2].decode()
    expect("index.html", '<!doctype html><meta name="served-by" content="foretell"><title>page</title>', body.strip())


def test_missing(s, _):
    for path in ("/nothing", "/../etc/passwd", "/%2e%2e/etc/passwd", "/..%2f..%2fetc%2fpasswd", "/app.js/", "//app.js", "/page/app.js",
                 "/app.js%00.html", "/api", "/api/", "/api/nothing", "/" + "a" * 4000):
        raw = s.raw(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        if status_of(raw) not in (404, 400) or b"root:" in raw:
            raise AssertionError(f"{path[:40]}: {raw[:80]!r}")


def test_methods(s, _):
    for method, path, allow in (("POST", "/", "GET, HEAD"), ("DELETE", "/app.js", "GET, HEAD"), ("GET", "/api/answer", "POST"),
                                ("PUT", "/api/batch", "POST"), ("OPTIONS", "/api/answer", "POST"), ("BREW", "/", "GET, HEAD")):
        status, headers, body = s.ask(method, path)
        expect(f"{method} {path}", (405, allow, "method"), (status, headers.get("Allow"), error_code(body)))


def test_host(s, _):
    for host in ("evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "192.168.0.1", "[::2]", "[", "", ":80", "localhost:99999999"):
        for path in ("/", "/api/about"):
            status, _, body = s.ask("GET", path, headers={"Host": host})
            if (status, error_code(body)) != (403, "wrong_host"):
                raise AssertionError(f"Host {host}: {status}")
    for host in ("localhost", f"LocalHost:{s.port}", "127.0.0.1", "[::1]:9000"):
        expect(f"Host {host}", 200, s.ask("GET", "/api/about", headers={"Host": host})[0])
    if status_of(s.raw(b"GET /api/about HTTP/1.1\r\n\r\n")) != 400:
        raise AssertionError("HTTP/1.1 without Host is taken")
    if status_of(s.raw(b"GET /api/about HTTP/1.0\r\n\r\n")) not in (400, 403):
        raise AssertionError("HTTP/1.0 without Host is taken")


def test_origin(s, _):
    own = f"127.0.0.1:{s.port}"
    for origin in ("http://evil.example", "null", "http://localhost", f"http://{own}.evil.example", "", f"ftp://{own}", f"http://{own}/"):
        status, _, body = s.post("/api/answer", KERNEL, Host=own, Origin=origin)
        if (status, error_code(body)) != (403, "wrong_origin"):
            raise AssertionError(f"Origin {origin!r}: {status} {body[:80]!r}")
    expect("own Origin", 200, s.post("/api/answer", KERNEL, Host=own, Origin=f"http://{own}")[0])
    for site in ("cross-site", "same-site"):
        expect(site, 403, s.post("/api/answer", KERNEL, Sec_Fetch_Site=site)[0])
    expect("own site", 200, s.post("/api/answer", KERNEL, Sec_Fetch_Site="same-origin")[0])


def test_bodies(s, _):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp"):
        expect(kind, 415, s.ask("POST", "/api/answer", KERNEL, {"Content-Type": kind})[0])
    expect("no type", 415, status_of(s.raw(f"POST /api/answer HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len(KERNEL)}\r\n\r\n{KERNEL}".encode())))
    for body in ("", "{", "null", "[1]", '{"task":"nothing"}', "\xff", "[" * 100000, '{"task":"train","model":"gpt2","gpu":"nope"}'):
        status, _, answer = s.post("/api/answer", body.encode("latin-1"))
        expect(f"body {body[:20]!r}", (400, False), (status, json.loads(answer)["ok"]))
    # An id that looks like an answer changes nothing.
    status, _, answer = s.post("/api/answer", '{"id":"\\",\\"ok\\":true,","task":"nothing"}')
    expect("an id with quotes", 400, status)
    status, _, answer = s.post("/api/answer", KERNEL, Content_Type="application/json; charset=utf-8")
    expect("an answer", (200, True), (status, json.loads(answer)["ok"]))


def test_sizes(s, _):
    head = "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
    for path, most in (("/api/answer", 16 << 20), ("/api/batch", 64 << 20)):
        raw = s.raw((head.format(path) + f"Content-Length: {most + 1}\r\n\r\n").encode())
        expect(f"{path} announced", 413, status_of(raw))
    raw = s.raw((head.format("/api/answer") + "Content-Length: 99999999999999999999999\r\n\r\n").encode())
    if status_of(raw) not in (400, 413):
        raise AssertionError(f"an impossible length: {raw[:60]!r}")
    raw = s.raw((head.format("/api/answer") + "Content-Length: -5\r\n\r\n").encode())
    expect("a negative length", 400, status_of(raw))
    chunk = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"
    body = head.format("/api/answer").encode() + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 1030 + b"0\r\n\r\n"
    expect("chunks beyond the limit", 413, status_of(s.raw(body)))
    raw = s.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 100000 + b"\r\n\r\n")
    if status_of(raw) not in (431, 413, 414, 400):
        raise AssertionError(f"large headers: {raw[:60]!r}")
    # A body cut short, and nonsense in place of HTTP.
    s.raw((head.format("/api/answer") + "Content-Length: 500\r\n\r\n{").encode(), read=False)
    s.raw(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc" + os.urandom(500), read=False)
    s.raw(os.urandom(2000), read=False)
    expect("after that", 200, s.post("/api/answer", KERNEL)[0])


def test_slow(program, _):
    """Clients that send a byte now and then are left, by a server that waits one second; others are answered."""
    s = Server(program, "--timeout", str(TIMEOUT_S))
    try:
        dawdle(s)
    finally:
        s.stop()


def dawdle(s):
    slow = [socket.create_connection(("127.0.0.1", s.port), timeout=HANG_S) for _ in range(20)]
    slow_body = socket.create_connection(("127.0.0.1", s.port), timeout=HANG_S)
    slow_body.sendall(f"POST /api/answer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(KERNEL)}\r\n\r\n".encode())
    open_ones = slow + [slow_body]
    begin = time.monotonic()
    while open_ones and time.monotonic() - begin < HANG_S:
        for one in list(open_ones):
            try:
                one.setblocking(True)
                one.sendall(b"G" if one is not slow_body else b" ")
                one.setblocking(False)
                if one.recv(4096) == b"":
                    open_ones.remove(one)
            except BlockingIOError:
                pass
            except OSError:
                open_ones.remove(one)
        try:
            expect("meanwhile", 200, s.post("/api/answer", KERNEL)[0])
        except (OSError, http.client.HTTPException):
            pass  # on a busy machine we are too slow for it ourselves
        time.sleep(0.05)
    for one in slow + [slow_body]:
        one.close()
    expect("slow clients still there", 0, len(open_ones))
    expect("the server", None, s.process.poll())


def test_many_connections(s, _):
    """More than there are places for: some are turned away, and the server goes on."""
    held = []
    for _ in range(200):
        try:
            held.append(socket.create_connection(("127.0.0.1", s.port), timeout=HANG_S))
        except OSError:
            break
    for one in held:
        one.close()
    deadline = time.monotonic() + HANG_S
    while True:
        try:
            expect("after that", 200, s.post("/api/answer", KERNEL)[0])
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def test_answers(s, program):
    lines = made.lines(120, 7)
    body = "".join(line + "\n" for line in lines)
    batch = subprocess.run([program, "batch"], input=body, capture_output=True, text=True).stdout
    status, headers, answer = s.ask("POST", "/api/batch", body.encode(), {"Content-Type": "application/x-ndjson"})
    timeless = lambda text: re.sub(r'"search_ms":[^,}]*', "", text)
    expect("a batch", (200, "application/x-ndjson"), (status, headers["Content-Type"]))
    if timeless(answer.decode()) != timeless(batch):
        raise AssertionError("a batch over HTTP differs from `foretell batch`")
    few = [line for line in lines[:3] if '"plan"' not in line]
    answer = s.ask("POST", "/api/batch", "\n".join(few).encode(), JSON)[2].decode().splitlines()
    expect("answers to few lines", len(few), len(answer))
    expect("an empty batch", (200, b""), s.ask("POST", "/api/batch", b"\n\n", JSON)[0::2])


def test_files(program, folder):
    files = pathlib.Path(folder) / "files"
    (files / "sub").mkdir(parents=True)
    config = {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "_name_or_path": "/home/somebody/gpt2"}
    (files / "sub" / "config.json").write_text(json.dumps(config))
    secret = pathlib.Path(folder) / "secret.json"
    secret.write_text(json.dumps(config))
    (files / "link.json").symlink_to(secret)
    (files / "out").symlink_to(folder)
    train = lambda model: json.dumps({"task": "train", "model": model, "gpu": "h100_sxm", "seq": 128})
    server = Server(program, "--files", str(files))
    try:
        for model in ("sub/config.json", "sub", str(files / "sub" / "config.json"), "./sub/../sub/config.json", config, "gpt2", "openai-community/gpt2"):
            status, _, body = server.post("/api/answer", train(model))
            expect(f"model {model}", 200, status)
        for model in (str(secret), "../secret.json", "link.json", "out/secret.json", "/etc/passwd", "/no/such/file", "sub/../../secret.json", "../../../../etc/passwd"):
            for body in (train(model), json.dumps({"task": "trace", "file": model}), json.dumps({"task": "compare", "requests": [json.loads(train(model))] * 2}),
                         train(model).replace("/", "\\u002f")):
                status, _, answer = server.post("/api/answer", body)
                expect(f"{body[:80]}", (403, "file"), (status, error_code(answer)))
        # What a file holds is read again each time.
        first = json.loads(server.post("/api/answer", train("sub/config.json"))[2])["step_ms"]
        (files / "sub" / "config.json").write_text(json.dumps({**config, "n_layer": 24}))
        second = json.loads(server.post("/api/answer", train("sub/config.json"))[2])["step_ms"]
        if not second > first * 1.2:
            raise AssertionError(f"a changed file is not seen: {first} {second}")
        lines = server.post("/api/batch", train(str(secret)) + "\n" + train("gpt2") + "\n")[2].decode().splitlines()
        expect("a batch's lines", [False, True], [json.loads(line)["ok"] for line in lines])
    finally:
        server.stop()
    server = Server(program)
    try:
        for model in (str(secret), "files/sub/config.json", "config.json", "/etc/passwd", "../secret.json"):
            status, _, body = server.post("/api/answer", train(model))
            if status not in (400, 403):
                raise AssertionError(f"without --files: {model} {status}")
        about = json.loads(server.ask("GET", "/api/about")[2])
        expect("without --files", (False, True), (about["files"], about["shipped"]))
    finally:
        server.stop()
    # A predictor of one's own: the page's library would answer otherwise, so it must not.
    server = Server(program, "--predictor", str(pathlib.Path(__file__).resolve().parents[2] / "data/predictors/default.ftp"))
    try:
        expect("with --predictor", False, json.loads(server.ask("GET", "/api/about")[2])["shipped"])
    finally:
        server.stop()


def test_token(program, page):
    for options in (["--listen", "0.0.0.0"], ["--listen", "0.0.0.0", "--token", "short"], ["--token", "with a blank in it, long"], ["--listen", "nowhere"]):
        refused = subprocess.run([program, "web", "--port", "0", *options], capture_output=True, text=True)
        expect(" ".join(options), 2, refused.returncode)
    server = Server(program, "--listen", "0.0.0.0", "--token", TOKEN, page=page)
    try:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}, {"Cookie": "foretell_token=" + TOKEN[:-1]},
                        {"Cookie": f"other={TOKEN}"}):
            status, _, body = server.post("/api/answer", KERNEL, **headers)
            expect(f"{headers}", (401, "unauthorized"), (status, error_code(body)))
        expect("bearer", 200, server.post("/api/answer", KERNEL, Authorization=f"Bearer {TOKEN}")[0])
        expect("cookie", 200, server.post("/api/answer", KERNEL, Cookie=f"a=b; foretell_token={TOKEN}")[0])
        status, headers, _ = server.ask("GET", f"/?token={TOKEN}")
        expect("the link", (303, "/"), (status, headers["Location"]))
        for part in (f"foretell_token={TOKEN}", "HttpOnly", "SameSite=Strict"):
            if part not in headers["Set-Cookie"]:
                raise AssertionError(headers["Set-Cookie"])
        expect("a wrong link", 200, server.ask("GET", "/?token=wrong")[0])
        expect("an address of the machine", 200, server.ask("GET", "/", headers={"Host": "10.1.2.3:80"})[0])
        expect("another's name", 403, server.ask("GET", "/", headers={"Host": "evil.example"})[0])
    finally:
        server.stop(signal.SIGTERM)


def test_many_models(program, _):
    """Hundreds of different models, steps and GPUs: a session keeps the room of the largest, and no more than that."""
    s = Server(program, "--timeout", "60")
    try:
        models = [m["name"] for m in json.loads(s.post("/api/answer", '{"task":"models"}')[2])["models"]]
        gpus = [g["name"] for g in json.loads(s.post("/api/answer", '{"task":"gpus"}')[2])["gpus"]]
        connection = http.client.HTTPConnection("127.0.0.1", s.port, timeout=HANG_S)

        def round_of(which):
            for i in range(0, len(models), 2):
                request = {"task": ("train", "decode")[which], "model": models[(i + which) % len(models)], "gpu": gpus[(7 * i + which) % len(gpus)],
                           "batch": 1 << i % 5, "seq": 256 << i % 6, "detail": "kernels"}
                connection.request("POST", "/api/answer", json.dumps(request), JSON)
                answer = connection.getresponse()
                if answer.status not in (200, 400) or answer.read()[:6] != b'{"ok":':
                    raise AssertionError(f"{answer.status} of {request}")
            return s.memory_kib()

        first, second = round_of(0), round_of(1)
        if second > first * 1.1 + 8192:
            raise AssertionError(f"memory grew from {first} to {second} KiB with {len(models)} models")
        connection.close()
    finally:
        s.stop()


def test_end(s, _):
    status, out, err = s.stop()
    expect("status after Ctrl-C", 0, status)
    if "ERROR" in err or "runtime error" in err:
        raise AssertionError(err)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--load", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--print", action="store_true")
    options = parser.parse_args()
    program = os.path.abspath(options.program)
    if b"libmicrohttpd" in subprocess.run([program, "web", "--port", "x"], capture_output=True).stderr:
        print("1..0 # SKIP built without libmicrohttpd")
        return 0
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
    with tempfile.TemporaryDirectory() as folder:
        page = page_folder(folder)
        server = Server(program, "--timeout", "60", page=page)
        tests = [(test_page, server, None), (test_says_who_serves, server, None), (test_missing, server, None), (test_methods, server, None), (test_host, server, None), (test_origin, server, None),
                 (test_bodies, server, None), (test_sizes, server, None), (test_slow, program, None), (test_many_connections, server, None),
                 (test_answers, server, program), (test_files, program, folder), (test_token, program, page), (test_many_models, program, None),
                 (hostile.test_spoilt_requests, program, 600), (hostile.test_truncated_bodies, program, None), (hostile.test_answers_nobody_takes, program, None),
                 (lambda s, _: load(s, options.load, options.clients, options.print), server, None), (test_end, server, None)]
        failed = 0
        print(f"1..{len(tests)}", flush=True)
        for number, (test, first, second) in enumerate(tests, 1):
            name = getattr(test, "__name__", "").replace("test_", "").replace("_", " ").replace("<lambda>", f"{options.load} requests")
            try:
                test(first, second)
                print(f"ok {number} - {name}", flush=True)
            except Exception as fault:  # noqa: BLE001 - a dead server is a failed test as well
                failed += 1
                print(f"not ok {number} - {name}", flush=True)
                for line in f"{type(fault).__name__}: {fault}".splitlines()[:12]:
                    print("# " + line[:400], flush=True)
        if server.process.poll() is None:
            server.process.kill()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
