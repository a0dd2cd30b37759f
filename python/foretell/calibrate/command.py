"""The command: options in, a file of measurements and a calibration out, an exit status."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from . import collectives, fitting, host, records
from .cells import chosen_cells
from .chooser import Chooser
from .device import Description, Device
from .errors import EXIT_INPUT, EXIT_INTERRUPTED, CalibrateError
from .forecaster import Forecaster, find_program, open_forecaster
from .options import Options, parse
from .progress import Bar, clock
from .records import Earlier, Writer
from .session import Exchanges, Result, Session, Stop

SUFFIX = ".ftcal"


def say(text: str) -> None:
    print(f"foretell: {text}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str]) -> int:
    try:
        return calibrate(parse(arguments))
    except CalibrateError as error:
        say(str(error))
        return error.status
    except KeyboardInterrupt:  # before the first point
        say("interrupted")
        return EXIT_INTERRUPTED


def calibrate(options: Options, device: Device | None = None) -> int:
    """`device`: one that is open already, for tests."""
    earlier = records.read(options.resume) if options.resume else None
    if options.output and not options.resume:
        records.refuse_existing(options.output)
    program = find_program()
    device = device or _open(options, program)
    forecaster: Forecaster | None = None
    try:
        described = device.describe()
        _check_same(described, earlier, options)
        forecaster = open_forecaster(program, described.gpu, options.predictor)
        result, path = _measure(options, device, described, earlier, forecaster)
    finally:
        device.close()
        if forecaster:
            forecaster.close()
    return _finish(options, result, path, program)


def _open(options: Options, program: Path | None) -> Device:
    if options.simulate:
        from .simulated import Simulated

        return Simulated(options.simulate, program, options.seed)
    try:
        import torch  # noqa: F401
    except ImportError:
        raise CalibrateError(
            "calibrate measures with PyTorch, which this Python does not have: pip install torch"
        ) from None
    from .torch_device import open_device

    return open_device(options.gpu, options.allow_busy, options.seed)


def _check_same(described: Description, earlier: Earlier | None, options: Options) -> None:
    if earlier and earlier.header.get("gpu") != described.gpu:
        raise CalibrateError(
            f"{options.resume}: measured on {_name(earlier.header.get('gpu'))}, this is {_name(described.gpu)}"
        )


def _name(gpu: Any) -> str:
    return str(gpu.get("name", "a spec of its own")) if isinstance(gpu, dict) else str(gpu)


def _measure(
    options: Options,
    device: Device,
    described: Description,
    earlier: Earlier | None,
    forecaster: Forecaster,
) -> tuple[Result, Path]:
    cells = chosen_cells(described.dtypes, options.families, options.dtypes)
    chooser = Chooser(
        cells, forecaster, held_out=options.held_out, seed=options.seed, memory_bytes=described.memory_bytes
    )
    rows = earlier.rows if earlier else []
    chooser.restore(records.lines_of(rows))
    spent_s, budget_s = earlier.spent_s if earlier else 0.0, 60.0 * options.minutes
    path = options.resume or options.output or Path(f"calibration-{_name(described.gpu)}.jsonl")
    say(f"measuring {described.title} until {clock(budget_s)}, {len(cells)} kinds of kernels; Ctrl-C ends it")
    if forecaster.name == "roofline":
        say("the program foretell was not found; points are chosen without its forecasts")
    for text in described.warnings:
        say(text)
    if spent_s >= budget_s:
        say(f"{path} holds {clock(spent_s)} already: --minutes {2 * spent_s / 60:.0f} goes on")
        return Result(seconds=spent_s), path
    _write_host(device, described, host.path_beside(path))
    writer = Writer(path, earlier.whole_bytes if earlier else None)
    bar = Bar(budget_s)
    try:
        started_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        facts = {**described.facts, "seed": options.seed, "held_out": options.held_out, "started": started_at}
        writer.header(described.gpu, {**facts, "chosen_by": forecaster.name})
        session = Session(
            device, chooser, writer, budget_s=budget_s, spent_s=spent_s, progress=bar,
            exchanges=_exchanges(options, described, rows),
        )  # fmt: skip
        with Stop() as stop:
            return session.run(stop), path
    finally:
        bar.close()
        writer.close()


def _write_host(device: Device, described: Description, path: Path) -> None:
    """What the host takes, measured first, while the machine is quiet."""
    software = described.facts.get("software", {})
    told = ", ".join(f"{key} {value}" for key, value in software.items()) if isinstance(software, dict) else str(software)
    found = host.describe(device.host_us(), path.name.removesuffix(host.SUFFIX), described.title, told)
    if found is None:
        say("the host's operators could not be timed; forecasts use the built-in host")
        return
    try:
        host.write(path, found)
    except OSError as error:
        raise CalibrateError(f"{path}: {error.strerror}") from None
    say(f"the host issues operators in {found['slowdown']:.2f} times what the one built in takes: --host {path}")


def _exchanges(options: Options, described: Description, rows: list[records.Row]) -> Exchanges | None:
    if described.gpus < 2 or (options.families and "collectives" not in options.families):
        return None
    done = [int(row.id.partition("#")[2]) for row in rows if row.id.startswith("collectives#")]

    def measure(seconds: float) -> Iterator[dict[str, Any]]:
        return collectives.measure(described.gpus, seconds, max(done, default=-1) + 1)

    return measure


def _finish(options: Options, result: Result, path: Path, program: Path | None) -> int:
    for text in dict.fromkeys(result.warnings):
        say(text)
    for kind, count in result.skipped.most_common(8):
        say(f"skipped {count} x {kind}")
    if result.points:
        say(
            f"{result.points} points ({result.held_out} held out) in {path}, {clock(result.seconds)} in all; "
            f"references scatter by {100 * result.noise:.1f} %"
        )
    if result.capped > 0.05 * result.points:
        say(f"the power limit held the clock at {100 * result.capped / result.points:.0f} % of the points")
    calibration = options.calibration or path.with_suffix(SUFFIX)
    fit = partial(fitting.command_of, measurements=path, calibration=calibration, predictor=options.predictor)
    if result.lost:
        say(f"{result.lost}; what was measured before is in {path}, --resume {path} goes on")
        return EXIT_INPUT
    if result.interrupted:
        say(f"interrupted; --resume {path} goes on, `{' '.join(fit('foretell'))}` takes what is there")
        return EXIT_INTERRUPTED
    if result.points == 0 and not options.resume:
        say("nothing could be measured")
        return EXIT_INPUT
    if not options.fit:
        return 0
    if program is None:
        say(f"the program foretell was not found; where it is: `{' '.join(fit('foretell'))}`")
        return 0
    return fitting.fit(program, path, calibration, options.predictor)
