"""Clients that ask a server at once: how fast it answers, and what happens to its memory."""
import concurrent.futures
import json
import re
import socket
import statistics
import time

import requests as made  # requests.py beside this file
from served import status_of


def client(port, bodies, count):
    """Asks over one connection that is kept; how long each answer took. A plain socket: the client shares the cores."""
    times = []
    with socket.create_connection(("127.0.0.1", port), timeout=600) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(count):
            begin = time.perf_counter()
            s.sendall(bodies[i % len(bodies)])
            got = s.recv(1 << 20)
            while (end := got.find(b"\r\n\r\n")) < 0:
                more = s.recv(1 << 20)
                if not more:
                    raise AssertionError("the server closed before an answer")
                got += more
            length = int(re.search(rb"Content-Length: (\d+)", got).group(1))
            while len(got) < end + 4 + length:
                more = s.recv(1 << 20)
                if not more:
                    raise AssertionError("the server closed in the middle of an answer")
                got += more
            times.append(time.perf_counter() - begin)
            status, text = status_of(got), got[end + 4:]
            if len(text) != length or status not in (200, 400) or text.startswith(b'{"ok":true') != (status == 200):
                raise AssertionError(f"{status} {text[:200]!r}")
    return times


def load(s, count, clients, show):
    """Kernels, steps and exchanges over connections that are kept; every answer is looked at."""
    maker = made.Maker(3)
    texts = [json.dumps(maker.random.choice([maker.kernel, maker.kernel, maker.step, maker.collective])()) for _ in range(60)]
    bodies = [f"POST /api/answer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(t)}\r\n\r\n{t}".encode() for t in texts]
    took = []

    def round_of(requests):
        begin = time.perf_counter()
        with concurrent.futures.ProcessPoolExecutor(clients) as pool:
            for times in pool.map(client, [s.port] * clients, [bodies] * clients, [requests // clients] * clients):
                took.extend(times)
        return time.perf_counter() - begin

    for _ in range(3):  # sessions learn what there is, one model after the other
        round_of(min(count, 4000))
    before, cpu = s.memory_kib(), s.cpu_s()
    took.clear()
    seconds = round_of(count)
    cpu = s.cpu_s() - cpu
    after = s.memory_kib()
    took.sort()
    if show:
        print(f"# {count} requests, {clients} clients: {count / seconds:.0f} answers/s, median {1e3 * statistics.median(took):.2f} ms, "
              f"p99 {1e3 * took[int(len(took) * 0.99)]:.2f} ms; the server took {1e3 * cpu / count:.2f} ms of a core per answer, {before} -> {after} KiB")
    if after > before * 1.1 + 8192:
        raise AssertionError(f"memory grew from {before} to {after} KiB over {count} requests")
