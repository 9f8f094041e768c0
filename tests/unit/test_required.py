"""A test that cannot run is skipped at home, and fails in CI."""

import pytest

from tests.support.required import VARIABLE, cannot_run


def test_at_home_it_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(pytest.skip.Exception, match="there is no Go"):
        cannot_run("there is no Go")


def test_in_ci_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    with pytest.raises(pytest.fail.Exception, match="there is no Go"):
        cannot_run("there is no Go")
