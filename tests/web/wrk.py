#!/usr/bin/env python3
"""The server of `foretell web` under wrk: wrk.py PROGRAM [--requests N] [--connections N]

Kernels, steps and exchanges over connections that are kept, until as many were answered as were wanted. Prints answers per
second, the 99th percentile and the server's memory before and after; a status other than 200, a connection that failed or
memory that grew ends with an error. clients.py looks at every answer; this one loads as others do.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import requests as made  # requests.py beside this file
from served import Server, page_folder

SCRIPT = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local bodies, at = {%s}, 0
request = function()
  at = at %% #bodies + 1
  return wrk.format(nil, "/api/answer", nil, bodies[at])
end
"""


def bodies(server, count=60):
    """Requests that are answered: wrk takes any other status than 200 for an error."""
    maker, found = made.Maker(3), []
    while len(found) < count:
        text = json.dumps(maker.random.choice([maker.kernel, maker.kernel, maker.step, maker.collective])())
        if server.post("/api/answer", text)[0] == 200:
            found.append(text)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--requests", type=int, default=100000)
    parser.add_argument("--connections", type=int, default=8)
    options = parser.parse_args()
    if not shutil.which("wrk"):
        print("the server under wrk: not measured (Debian: wrk)")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        server = Server(os.path.abspath(options.program), page=page_folder(folder))
        script = pathlib.Path(folder, "requests.lua")
        script.write_text(SCRIPT % ", ".join(f"[==[{text}]==]" for text in bodies(server)))

        def run(seconds):
            command = ["wrk", "-t2", f"-c{options.connections}", f"-d{seconds}s", "--latency", "-s", str(script), f"http://localhost:{server.port}"]
            text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            if "Non-2xx" in text or "Socket errors" in text:
                raise SystemExit(text)
            return text, int(re.search(r"(\d+) requests in", text).group(1))

        run(3)  # sessions learn what there is
        before, answered, text = server.memory_kib(), 0, ""
        while answered < options.requests:
            text, more = run(10)
            answered += more
        after = server.memory_kib()
        rate, slow = (re.search(pattern, text).group(1) for pattern in (r"Requests/sec: *([0-9.]+)", r"99% *(\S+)"))
        print(f"the server under wrk: {answered} answers over {options.connections} connections, {rate} a second, p99 {slow}, none failed; {before} -> {after} KiB")
        server.process.terminate()
        server.process.wait()
    return 1 if after > before * 1.1 + 8192 else 0


if __name__ == "__main__":
    sys.exit(main())
