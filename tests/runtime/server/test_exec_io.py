"""What goes into a buffered command and comes out of it, byte for byte."""

import base64
from collections.abc import Callable
from typing import Any

import aiohttp

Execute = Callable[..., Any]


async def test_standard_input_is_empty_unless_given(execute: Execute) -> None:
    assert (await execute("cat; echo end"))["stdout"] == "end\n"
    assert (await execute("cat", stdin="hällo"))["stdout"] == "hällo"
    assert (await execute("cat", stdin=""))["stdout"] == ""


async def test_standard_input_of_megabytes_arrives_whole(execute: Execute) -> None:
    text = "0123456789abcdef" * 200_000
    assert (await execute("cat", stdin=text))["stdout"] == text


async def test_a_command_need_not_read_its_input(execute: Execute) -> None:
    assert (await execute("echo done", stdin="x" * 5_000_000))["stdout"] == "done\n"


async def test_all_bytes_survive_in_base64_both_ways(execute: Execute) -> None:
    data = bytes(range(256)) * 4
    sent = base64.b64encode(data).decode()
    found = await execute("cat", stdin=sent, stdinEncoding="base64", outputEncoding="base64")
    assert base64.b64decode(found["stdout"], validate=True) == data
    assert found["outputEncoding"] == "base64"


async def test_input_that_is_not_base64_is_refused(http: aiohttp.ClientSession) -> None:
    for text in ("a", "!!!!", "YQ==\n", "YQ==YQ=="):
        body = {"command": "cat", "stdin": text, "stdinEncoding": "base64"}
        async with http.post("/api/execute", json=body) as response:
            found = await response.json()
            assert response.status == 400
        assert found["context"]["validationErrors"][0]["code"] == "INVALID_BASE64"


async def test_output_that_is_not_utf_8_gets_replacement_characters(execute: Execute) -> None:
    assert (await execute(r"printf 'a\xff\xc3b'"))["stdout"] == "a\ufffd\ufffdb"


async def test_output_is_exact(execute: Execute) -> None:
    assert (await execute("printf a"))["stdout"] == "a"
    assert (await execute(r"printf 'a\n'"))["stdout"] == "a\n"
    assert (await execute(r"printf 'a\0b'"))["stdout"] == "a\0b"


async def test_here_documents_and_scripts_run_unmodified(execute: Execute) -> None:
    script = "set -e\ncat <<'EOF'\n$HOME `x` \"quoted\"\nEOF\nfor i in 1 2; do\n  echo $i\ndone\n"
    assert (await execute(script))["stdout"] == '$HOME `x` "quoted"\n1\n2\n'


async def test_a_syntax_error_is_the_commands_failure(execute: Execute) -> None:
    found = await execute("echo 'unterminated")
    assert found["exitCode"] != 0
    assert found["stderr"]


async def test_a_command_longer_than_linux_takes_as_an_argument_runs(execute: Execute) -> None:
    text = "x" * 500_000
    found = await execute(
        f"cat <<'EOF' | wc -c\n{text}\nEOF\necho $0; ls -l /proc/self/fd | grep -c memfd; exit 3"
    )
    assert found["stdout"] == "500001\nbash\n0\n"
    assert found["exitCode"] == 3
