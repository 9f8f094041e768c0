"""A command's output, collected to its end."""

from __future__ import annotations

import codecs
import time
from collections.abc import Callable

from sandpod._results import ExecResult, Keeper
from sandpod._stream import ExecStream
from sandpod.errors import CommandFailed

Teller = Callable[[str], object]


def to_the_end(
    run: ExecStream,
    *,
    begun: float,
    on_stdout: Teller | None,
    on_stderr: Teller | None,
    max_output_bytes: int,
    check: bool,
) -> ExecResult:
    kept = {name: Keeper(limit=max_output_bytes) for name in ("stdout", "stderr")}
    tellers = {"stdout": _teller(on_stdout), "stderr": _teller(on_stderr)}
    with run:
        for output in run:
            kept[output.stream].add(output.data)
            tellers[output.stream](output.data, False)
    for tell in tellers.values():
        tell(b"", True)
    assert run.exit_code is not None  # a stream that ends without one has raised
    result = ExecResult(
        exit_code=run.exit_code,
        out=kept["stdout"].captured(),
        err=kept["stderr"].captured(),
        duration=time.monotonic() - begun,
    )
    if check and not result.ok:
        said = result.stderr.strip().rsplit("\n", 1)[-1][:200]
        raise CommandFailed(
            f"The command ended with exit code {result.exit_code}" + (f": {said}" if said else "."),
            result=result,
        )
    return result


def _teller(callback: Teller | None) -> Callable[[bytes, bool], None]:
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def tell(data: bytes, last: bool) -> None:
        text = decoder.decode(data, last)
        if callback is not None and text:
            callback(text)

    return tell
