"""Programs of others that know Kubernetes' rules and nothing of ours. Each is asked with a line of JSON and
answers with one. hack/tools/judge.sh builds them.
"""

import json
import shutil
import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

BUILD = Path(__file__).parents[2] / "hack/tools/judge.sh"
# Of a first build, which compiles a few hundred packages.
BUILD_SECONDS = 900

Ask = Callable[[Any], Any]


@contextmanager
def judging(name: Literal["cyclonus", "podsecurity"]) -> Generator[Ask]:
    if shutil.which("go") is None:
        pytest.skip(f"there is no Go to build {name} with")
    command = [BUILD, name]
    built = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=BUILD_SECONDS)
    with subprocess.Popen(
        [built.stdout.strip()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        questions, answers = process.stdin, process.stdout

        def ask(question: Any) -> Any:
            questions.write(json.dumps(question) + "\n")
            questions.flush()
            answer = answers.readline()
            assert answer, f"{name} has ended"
            return json.loads(answer)

        try:
            yield ask
        finally:
            questions.close()
            process.wait(timeout=10)
