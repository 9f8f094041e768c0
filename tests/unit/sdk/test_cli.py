"""The command line's own logic: options, tables, advice, completion, and what is not loaded."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import sandpod
from hypothesis import given
from hypothesis import strategies as st
from sandpod.cli import COMMANDS, _advice, _arguments, completion, main
from sandpod.cli._output import Table

ROOT = Path(__file__).parents[3]

_names = st.text("ABCXYZ_0189", min_size=1, max_size=8)
_values = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


@given(st.dictionaries(_names, _values))
def test_variables_come_out_as_they_were_written(env: dict[str, str]) -> None:
    assert _arguments.env_pairs([f"{name}={value}" for name, value in env.items()], environ={}) == env


@given(st.dictionaries(_names, _values))
def test_a_name_alone_takes_the_value_from_here(env: dict[str, str]) -> None:
    assert _arguments.env_pairs(list(env), environ=env) == env


def test_of_two_values_the_last_counts() -> None:
    assert _arguments.env_pairs(["A=1", "A=2", "A="], environ={}) == {"A": ""}


@pytest.mark.parametrize("item", ["=x", "", "NOT_HERE"])
def test_a_variable_that_cannot_be_is_told_which(item: str) -> None:
    with pytest.raises(ValueError, match="--env"):
        _arguments.env_pairs([item], environ={})


SPLITS: list[tuple[list[str], tuple[list[str], str, list[str]]]] = [
    (["get"], ([], "get", [])),
    (["-n", "x", "get", "-w"], (["-n", "x"], "get", ["-w"])),
    (["--namespace=x", "-ny", "get"], (["--namespace=x", "-ny"], "get", [])),
    (["--as", "get", "exec", "a", "--", "get"], (["--as", "get"], "exec", ["a", "--", "get"])),
    ([], ([], "", [])),
    (["-n"], (["-n"], "", [])),
    (["--help"], (["--help"], "", [])),
]


@pytest.mark.parametrize(("words", "parts"), SPLITS)
def test_options_may_stand_before_the_command(
    words: list[str], parts: tuple[list[str], str, list[str]]
) -> None:
    assert _arguments.split(words) == parts


@pytest.mark.parametrize("text", ["demo", "sandbox/demo", "sbx/demo", "sandbox.sandpod.dev/demo"])
def test_a_name_may_be_written_as_other_commands_print_it(text: str) -> None:
    assert _arguments.sandbox_name(text) == "demo"


def test_as_a_plugin_of_kubectl_it_calls_itself_so() -> None:
    assert _arguments.program("/usr/bin/kubectl-sandbox") == "kubectl sandbox"
    assert _arguments.program("/usr/bin/sandpod") == "sandpod"


def test_columns_stay_in_line_when_later_rows_are_longer() -> None:
    table = Table()
    assert table.lines([["NAME", "PHASE"], ["a", "Running"]]) == ["NAME   PHASE", "a      Running"]
    assert table.lines([["longer", "Asleep"]]) == ["longer   Asleep"]
    assert table.lines([["a", "Running"]]) == ["a        Running"]


@pytest.mark.parametrize(
    ("here", "advice"),
    [
        ([], "Make it with: sandpod create demo"),
        (["dmo", "other"], "Did you mean dmo? Make it with: sandpod create demo"),
        (["xyz", "abc"], "There are: abc, xyz. Make it with: sandpod create demo"),
        ([f"box-{n}" for n in range(7)], "There are: box-0, box-1, box-2, box-3, box-4 and 2 more. Make it"),
    ],
)
def test_who_names_a_sandbox_that_is_not_there_is_told_what_is(here: list[str], advice: str) -> None:
    assert _advice.suggestion("demo", here=here, program="sandpod").startswith(advice)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_a_help_with_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([name, "--help"])
    assert caught.value.code == 0
    printed = capsys.readouterr().out
    assert f"  sandpod {name}" in printed or f"| sandpod {name}" in printed
    assert all(len(line) <= 110 for line in printed.splitlines())


@pytest.mark.parametrize("name", COMMANDS)
def test_the_guide_has_every_command_and_every_option(name: str) -> None:
    guide = (ROOT / "docs" / "cli.md").read_text()
    section = guide.partition(f"\n## sandpod {name}\n")[2].partition("\n## ")[0]
    common = set(completion.options_of("version")) - {"--client", "-o", "--output"}
    for option in set(completion.options_of(name)) - common:
        assert option in section, f"{option} is not in the section on {name}"
    for option in common - {"-h", "--help"}:
        assert option in guide


@pytest.mark.parametrize(
    ("words", "code", "fragment"),
    [
        (["craete"], 2, "did you mean create?"),
        (["get", "--nonsense"], 2, "--nonsense"),
        (["create", "a", "--timeout", "soon"], 2, "45s, 10m or 1h30m"),
        (["exec", "a", "--nonsense"], 125, "--nonsense"),
        (["exec", "a", "--timeout", "soon", "--", "true"], 125, "45s, 10m or 1h30m"),
        (["exec"], 125, "NAME"),
        (["completion", "tcsh"], 2, "tcsh"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_sentence(
    words: list[str], code: int, fragment: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == code
    first, *rest = capsys.readouterr().err.splitlines()
    assert fragment in first
    assert len(rest) == 1


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (["exec", "demo"], "As in: sandpod exec demo -- uname -a"),
        (["exec", "demo", "--"], "As in: sandpod exec demo -- uname -a"),
        (["exec", "demo", "ls", "-la", "a b"], "As in: sandpod exec demo -- ls -la 'a b'"),
        (["exec", "demo", "-c", "x", "--", "y"], "not both"),
        (["create"], "As in: sandpod create demo"),
        (["delete"], "As in: sandpod delete demo"),
        (["delete", "a", "--all"], "As in: sandpod delete demo"),
        (["get", "demo", "-A"], "Leave out either"),
        (["create", "a", "-f", "/nowhere.yaml"], "/nowhere.yaml: No such file"),
    ],
)
def test_a_command_that_lacks_something_shows_how_it_is_meant(
    words: list[str], advice: str, capsys: pytest.CaptureFixture[str], kubeconfig: Path
) -> None:
    assert main(words) == (125 if words[0] == "exec" else 1)
    assert advice in capsys.readouterr().err


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of a cluster that nobody asks."""
    path = tmp_path / "kubeconfig"
    path.write_text(
        "{current-context: c, contexts: [{name: c, context: {cluster: c}}], "
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]}"
    )
    monkeypatch.setenv("KUBECONFIG", str(path))
    return path


def test_a_cluster_that_is_away_is_one_sentence(kubeconfig: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["get"]) == 1
    assert capsys.readouterr().err == (
        "sandpod get: The cluster at http://127.0.0.1:1 (context c) cannot be reached: connection refused.\n"
        "Is it running, and is this the right context?\n"
    )


def test_the_version_is_told_without_a_cluster(kubeconfig: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"client:     {sandpod.__version__}\n")
    assert "cannot be reached" in told


def completed(*words: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "sandpod", "__complete", *words], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_commands_and_options_complete() -> None:
    assert completed("e") == ["exec", "expose"]
    assert set(completed("")) == set(COMMANDS)
    assert completed("exec", "demo", "--ti") == ["--timeout"]
    assert "--namespace" in completed("-n", "x", "delete", "--n")
    assert completed("completion", "z") == ["zsh"]
    assert completed("get", "-o", "") == ["wide", "json", "yaml", "name"]
    assert completed("nonsense", "") == []


def test_nothing_is_offered_for_a_value_that_only_the_user_knows() -> None:
    assert completed("create", "--image", "") == []
    assert completed("-n", "") == []


def test_nothing_is_offered_for_the_words_of_a_remote_command() -> None:
    assert completed("exec", "demo", "--", "e") == []


def test_a_cluster_that_is_away_does_not_disturb_completion(kubeconfig: Path) -> None:
    assert completed("get", "") == []


def loaded(*words: str) -> set[str]:
    """The modules that a run of the program leaves loaded."""
    script = (
        "import sys\nfrom sandpod.cli import main\n"
        f"try: main({list(words)!r})\nexcept SystemExit: pass\n"
        "print(*sys.modules, sep='\\n', file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stderr.splitlines())


@pytest.mark.parametrize(
    "words", [[], ["--help"], ["exec", "--nonsense"], ["completion", "bash"], ["--version"]]
)
def test_what_needs_no_cluster_loads_no_client(words: list[str]) -> None:
    heavy = {"httpx", "yaml", "ssl", "asyncio", "sandpod.sandbox"}
    assert not heavy & loaded(*words)


def test_the_sdk_has_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert sandpod.__version__ == project["version"]


def test_everything_that_is_promised_is_there() -> None:
    assert {name for name in sandpod.__all__ if getattr(sandpod, name)} == set(sandpod.__all__)
    with pytest.raises(AttributeError):
        _ = sandpod.nonsense  # pyright: ignore[reportAttributeAccessIssue] - that it is not there is the point
