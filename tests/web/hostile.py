"""Clients that mean no good, or are broken: requests spoilt byte by byte, answers that nobody takes, bodies that end early."""
import errno
import http.client
import json
import pathlib
import random
import socket
import time

from served import HANG_S, JSON, KERNEL, TOKEN, Server, expect, status_of

# What a server may say to a request that somebody spoilt: that it is wrong, in one of the ways there are, or an answer.
SPOILT = {200, 303, 304, 400, 401, 403, 404, 405, 408, 411, 413, 414, 415, 417, 431, 501, 505}


def requests():
    """Whole requests of every kind, to be spoilt."""
    head = "Host: localhost\r\nContent-Type: application/json\r\n"
    batch = "\n".join([KERNEL, '{"task":"models"}', "{", ""])
    chunked = f"{len(KERNEL):x}\r\n{KERNEL}\r\n0\r\n\r\n"
    return [text.encode() for text in (
        f"POST /api/answer HTTP/1.1\r\n{head}Content-Length: {len(KERNEL)}\r\n\r\n{KERNEL}",
        f"POST /api/batch HTTP/1.1\r\n{head}Content-Length: {len(batch)}\r\n\r\n{batch}",
        f"POST /api/answer HTTP/1.1\r\n{head}Transfer-Encoding: chunked\r\n\r\n{chunked}",
        f"POST /api/answer HTTP/1.1\r\n{head}Expect: 100-continue\r\nContent-Length: {len(KERNEL)}\r\n\r\n{KERNEL}",
        f"GET /app.js?token={TOKEN} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept-Encoding: gzip;q=0.5, br\r\nIf-None-Match: \"x\"\r\n\r\n",
        f"GET /api/about HTTP/1.1\r\nHost: [::1]:80\r\nOrigin: http://[::1]:80\r\nCookie: foretell_token={TOKEN}; a=b\r\n\r\n",
        "GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.0\r\nHost: localhost\r\nRange: bytes=0-\r\n\r\n")]


def spoil(text, chance):
    """One to four changes: bytes that turn, vanish, come twice or come from nowhere; an end that comes early."""
    out = bytearray(text)
    for _ in range(chance.randrange(1, 5)):
        at, kind = chance.randrange(len(out) + 1), chance.randrange(7)
        if kind == 0 and at < len(out):
            out[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del out[at:at + chance.randrange(1, 9)]
        elif kind == 2:
            out[at:at] = out[at:at + chance.randrange(1, 40)]
        elif kind == 3:
            out[at:at] = chance.choice([b"\r\n", b"\r\n\r\n", b"\0", b"\xff\xfe", b"%00", b"../", b":", b"-1", b"99999999999999999999", b" ", b"\t"])
        elif kind == 4:
            out[at:at] = chance.choice([b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n", b"Host: evil.example\r\n", b"X: " + b"y" * 9000 + b"\r\n"])
        elif kind == 5:
            out[at:at + 4] = bytes(chance.randrange(256) for _ in range(4))
        else:
            del out[at:]
    return bytes(out)


def said(port, text):
    """What comes back to a client that has sent all it will; b"" where the server closes without a word."""
    with socket.create_connection(("127.0.0.1", port), timeout=HANG_S) as s:
        out = b""
        try:
            s.sendall(text)
            s.shutdown(socket.SHUT_WR)
            while chunk := s.recv(1 << 16):
                out += chunk
        except OSError as error:  # a server that has closed already is one that closes without a word
            if error.errno not in (errno.ECONNRESET, errno.EPIPE, errno.ENOTCONN):
                raise
        return out


def answered(port, text):
    """The status of a whole request; asked again where we were slower than the server waits, as on a busy machine."""
    end = time.monotonic() + HANG_S
    while True:
        status = status_of(said(port, text))
        if status not in (None, 408) or time.monotonic() > end:
            return status


def answers_still(s):
    """A kernel is answered; asked again where we were slower than the server waits."""
    end = time.monotonic() + HANG_S
    while True:
        try:
            status, _, body = s.post("/api/answer", KERNEL)
            if status != 408:
                return expect("meanwhile", (200, True), (status, json.loads(body)["ok"]))
        except (OSError, http.client.HTTPException):
            if s.process.poll() is not None or time.monotonic() > end:
                raise


def test_spoilt_requests(program, count=600, seed=18):
    """The same ones on every run. None is answered with a fault of ours, none ends the server."""
    s = Server(program, "--timeout", "1")
    try:
        chance, whole, seen = random.Random(seed), requests(), {}
        for text in whole:
            expect(f"whole: {text[:40]!r}", True, answered(s.port, text) in (200, 100, 400, 403, 404))
        for number in range(count):
            text = spoil(chance.choice(whole), chance)
            answer = said(s.port, text)
            status = status_of(answer)
            if answer and status not in SPOILT | {100}:
                raise AssertionError(f"{number}: {status} {answer[:120]!r} to {text!r}")
            if b"root:" in answer:
                raise AssertionError(f"{number}: a file of the system")
            seen[status] = seen.get(status, 0) + 1
        if len(seen) < 5:
            raise AssertionError(f"not spoilt enough: {seen}")
        answers_still(s)
        status, _, err = s.stop()
        expect("its end", (0, False), (status, "ERROR" in err or "runtime error" in err))
    finally:
        if s.process.poll() is None:
            s.process.kill()


def threads(s):
    return int(next(line for line in pathlib.Path(f"/proc/{s.process.pid}/status").read_text().splitlines() if line.startswith("Threads")).split()[1])


def test_answers_nobody_takes(program, _):
    """Long answers, and clients that never read: others are answered meanwhile, and the server is rid of them in the end."""
    s = Server(program, "--timeout", "1")
    try:
        answers_still(s)
        idle = threads(s)
        body = '{"task":"gpus"}\n' * 400  # tens of megabytes, more than any socket keeps
        head = "".join(f"{key}: {value}\r\n" for key, value in {"Host": "localhost", **JSON, "Content-Length": len(body)}.items())
        held, end = [], time.monotonic() + HANG_S
        for _ in range(8):
            one = socket.create_connection(("127.0.0.1", s.port), timeout=HANG_S)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.sendall(f"POST /api/batch HTTP/1.1\r\n{head}\r\n{body}".encode())
            expect("the first word of an answer", b"HTTP", one.recv(4))
            held.append(one)
        while threads(s) > idle + 1:
            answers_still(s)
            if time.monotonic() > end:
                raise AssertionError(f"{threads(s)} threads of {idle}: clients that take nothing are kept")
            time.sleep(0.2)
        for one in held:
            one.close()
    finally:
        s.stop()


def test_truncated_bodies(program, _):
    """A body that ends before its length, in halves of every size: no answer is made of it, and the next client has one."""
    s = Server(program, "--timeout", "1")
    try:
        for path in ("/api/answer", "/api/batch"):
            for kept in (0, 1, len(KERNEL) // 2, len(KERNEL) - 1):
                text = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(KERNEL)}\r\n\r\n{KERNEL[:kept]}"
                answer = said(s.port, text.encode())
                if answer and status_of(answer) not in (400, 408):
                    raise AssertionError(f"{kept} of {len(KERNEL)} bytes: {answer[:80]!r}")
                chunks = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n{len(KERNEL):x}\r\n{KERNEL[:kept]}"
                answer = said(s.port, chunks.encode())
                if answer and status_of(answer) not in (400, 408):
                    raise AssertionError(f"{kept} bytes of a chunk: {answer[:80]!r}")
        answers_still(s)
    finally:
        s.stop()
