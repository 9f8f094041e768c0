"""How the operator ends: whoever waits for that is told, whatever the reason."""

from sandpod_operator.app import App

from tests.support.operator_objects import INSTALLATION


async def test_an_operator_that_has_stopped_is_over_and_not_broken() -> None:
    app = App(INSTALLATION.settings)

    await app.stop()

    assert app.over.is_set()
    assert not app.broken.is_set()
