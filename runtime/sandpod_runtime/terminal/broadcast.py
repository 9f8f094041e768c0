"""One terminal's output on its way to everybody who watches it, and kept for those who will."""

from collections.abc import Callable

from sandpod_runtime.budget import Budget
from sandpod_runtime.terminal.scrollback import Scrollback
from sandpod_runtime.terminal.viewer import Farewell, Viewer


class Broadcast:
    def __init__(self, *, memory: Budget, on_room: Callable[[], None]) -> None:
        """`on_room` is told when somebody wants more after nobody did."""
        self._memory = memory
        self._on_room = on_room
        self._scrollback = Scrollback(memory)
        self._viewers: set[Viewer] = set()
        self._farewell: Farewell | None = None

    def __len__(self) -> int:
        return len(self._viewers)

    @property
    def is_wanted(self) -> bool:
        """The fastest viewer sets the pace: the others are cut off when they fall behind. With none there is
        nobody to wait for.
        """
        return not self._viewers or any(viewer.has_room for viewer in self._viewers)

    def write(self, data: bytes) -> None:
        self._scrollback.write(data)
        for viewer in list(self._viewers):
            viewer.push(data)
            if viewer.was_cut.done():
                self.detach(viewer)

    def attach(self) -> tuple[bytes, Viewer]:
        """What was written until now, and where all that follows arrives."""
        viewer = Viewer(memory=self._memory, on_room=self._on_room)
        self._viewers.add(viewer)
        if self._farewell is not None:
            viewer.finish(self._farewell)
        return self._scrollback.content(), viewer

    def detach(self, viewer: Viewer) -> None:
        viewer.drop()
        self._viewers.discard(viewer)
        if self.is_wanted:
            self._on_room()

    def cut(self, farewell: Farewell) -> None:
        for viewer in self._viewers:
            viewer.cut(farewell)

    def end(self, farewell: Farewell) -> None:
        self._farewell = farewell
        for viewer in self._viewers:
            viewer.finish(farewell)
        self._scrollback.release()
