"""What becomes of what the watches bring."""

from typing import Any, cast

import kopf
import pytest
from sandpod_operator.app import App
from sandpod_operator.kinds import POD, SANDBOX
from sandpod_operator.no_memory import NOTHING, NoDiffs, NoProgress

from tests.support.operator_objects import INSTALLATION

OBJECT: dict[str, Any] = {
    "metadata": {"namespace": "team", "name": "box", "uid": "u-1", "resourceVersion": "7"}
}


@pytest.mark.parametrize("kind", [SANDBOX, POD])
async def test_what_somebody_else_has_written_is_looked_at(kind: Any) -> None:
    app = App(INSTALLATION.settings)

    app.seen(kind, OBJECT, news=True)

    assert len(app.queue) == 1


@pytest.mark.parametrize("kind", [SANDBOX, POD])
async def test_what_we_have_written_is_not_looked_at_again(kind: Any) -> None:
    app = App(INSTALLATION.settings)

    app.seen(kind, OBJECT, news=False)

    assert len(app.queue) == 0
    assert app.metrics.watch_events.value(resource=kind.plural) == 1


def test_kopf_remembers_nothing_of_an_object() -> None:
    settings = kopf.OperatorSettings()
    settings.persistence.diffbase_storage = NoDiffs()
    settings.persistence.progress_storage = NoProgress()
    body, diffs = kopf.Body(cast("Any", OBJECT)), settings.persistence.diffbase_storage

    assert diffs.fetch(body=body) is None
    assert settings.persistence.progress_storage.clear(essence=diffs.build(body=body)) is NOTHING
