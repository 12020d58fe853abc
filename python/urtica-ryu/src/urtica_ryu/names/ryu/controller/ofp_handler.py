"""The application that sends the events of switches."""

from __future__ import annotations

from typing import Any

from ryu.base import app_manager
from ryu.controller import ofp_event
from urtica_ryu import link


class OFPHandler(app_manager.RyuApp):
    """Listens for switches."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.name = ofp_event.NAME
        self.controller: Any = None

    def start(self) -> Any:
        super().start()
        self.controller = link.make()
        return self.controller.start()

    def close(self) -> None:
        if self.controller is not None:
            self.controller.stop()
