"""How the output of exec travels: as one JSON body, written piece by piece when it is large, or as events."""

import codecs
from collections.abc import Iterator

from aiohttp.web_response import StreamResponse

from sandpod_runtime.clock import timestamp
from sandpod_runtime.process.command import Ending
from sandpod_runtime.process.output import Capture
from sandpod_runtime.process.rendering import base64_pieces, json_string, text_pieces
from sandpod_runtime.sse import ascii_json, data_event
from sandpod_runtime.surfaces.call import Call
from sandpod_runtime.wire import JSON_HEADERS, Request, encode, json_reply

# Larger outputs are not put together in memory a second time.
_AT_ONCE = 262_144


async def buffered_reply(
    request: Request, *, call: Call, ending: Ending, stdout: Capture, stderr: Capture
) -> StreamResponse:
    out = _pieces(stdout, call=call, note="")
    err = _pieces(stderr, call=call, note=call.timeout_note if ending.timed_out else "")
    fields: dict[str, object] = {
        "success": ending.exit_code == 0 and not ending.timed_out,
        "exitCode": ending.exit_code,
        "command": call.command,
        "duration": round(ending.seconds * 1000),
        "timestamp": timestamp(),
    }
    if call.session_id is not None:
        fields["sessionId"] = call.session_id
    if call.base64:
        fields["outputEncoding"] = "base64"
    for name, capture in (("stdoutCut", stdout), ("stderrCut", stderr)):
        if capture.cut:
            fields[name] = {"at": len(capture.head), "bytes": capture.cut}
    size = stdout.kept + stderr.kept
    return await reply_with_texts(request, fields=fields, texts={"stdout": out, "stderr": err}, size=size)


async def reply_with_texts(
    request: Request, *, fields: dict[str, object], texts: dict[str, Iterator[str]], size: int
) -> StreamResponse:
    if size <= _AT_ONCE:
        return json_reply(fields | {name: "".join(text) for name, text in texts.items()})
    response = StreamResponse(headers=JSON_HEADERS)
    await response.prepare(request)
    await response.write(encode(fields)[:-1])
    for name, text in texts.items():
        await response.write(b',"%b":' % name.encode())
        for piece in json_string(text):
            await response.write(piece)
    await response.write(b"}")
    return response


def _pieces(capture: Capture, *, call: Call, note: str) -> Iterator[str]:
    if note and not capture.ends_line:
        note = "\n" + note
    if call.base64:
        yield from base64_pieces(capture, note=note.encode())
    else:
        yield from text_pieces(capture)
        yield note


class OutputEvents:
    """Events with output; text is decoded across reads, so that a character cut by one survives."""

    def __init__(self, *, base64: bool) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")
        self._decoders = None if base64 else {name: decoder("replace") for name in ("stdout", "stderr")}

    def of(self, name: str, data: bytes) -> bytes:
        if self._decoders is None:
            return data_event(name, encode(data))  # bytes become base64
        text = self._decoders[name].decode(data)
        return data_event(name, ascii_json(text)) if text else b""

    def end(self, *, note: str) -> bytes:
        """What is left of unfinished characters, then `note` as the last words of stderr."""
        events: list[bytes] = []
        if self._decoders is not None:
            for name, decoder in self._decoders.items():
                if rest := decoder.decode(b"", final=True):
                    events.append(data_event(name, ascii_json(rest)))
        if note:
            events.append(self.of("stderr", note.encode()))
        return b"".join(events)
