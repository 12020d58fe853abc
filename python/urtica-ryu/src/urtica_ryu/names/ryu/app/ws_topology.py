"""Changes of the network over a WebSocket at `/v1.0/topology/ws`: calls by JSON-RPC, which the client answers."""

from __future__ import annotations

import logging
from typing import Any, ClassVar

from ryu.app.wsgi import ControllerBase, RPCError, WebSocketRPCClient, WSGIApplication, websocket
from ryu.base import app_manager
from ryu.controller.handler import set_ev_cls
from ryu.topology import event
from urtica_ryu import hub

LOG = logging.getLogger("ryu.app.ws_topology")


#: The changes that wait for a client's answers; a client that is further behind is closed.
MAX_CALLS = 1000


class _Client:
    """A client, which is called one change after the other."""

    def __init__(self, ws: Any):
        self._ws = ws
        self._rpc = WebSocketRPCClient(ws)
        self._calls = hub.Queue(MAX_CALLS)

    def tell(self, method: str, what: dict[str, Any]) -> None:
        """Has a method called soon."""
        if self._calls.full():
            LOG.warning("closing the WebSocket of a client that is %d changes behind", MAX_CALLS)
            self._ws.close()
        else:
            self._calls.put((method, what))

    def serve(self) -> None:
        """Calls, and reads answers, until the client leaves."""
        caller = hub.spawn(self._call)
        try:
            self._rpc.serve_forever()
        finally:
            hub.kill(caller)

    def _call(self) -> None:
        while True:
            method, what = self._calls.get()
            try:
                getattr(self._rpc.get_proxy(), method)(what)
            except RPCError as error:
                LOG.error("%s: a client answered with an error: %s", method, error)


class WebSocketTopology(app_manager.RyuApp):
    """Calls the methods of all clients."""

    _CONTEXTS: ClassVar[dict[str, Any]] = {"wsgi": WSGIApplication}

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        #: The clients.
        self.rpc_clients: list[_Client] = []
        kwargs["wsgi"].register(WebSocketTopologyController, {"app": self})

    @set_ev_cls(event.EventSwitchEnter)
    def _event_switch_enter_handler(self, ev: Any) -> None:
        self._call_all("event_switch_enter", ev.switch.to_dict())

    @set_ev_cls(event.EventSwitchLeave)
    def _event_switch_leave_handler(self, ev: Any) -> None:
        self._call_all("event_switch_leave", ev.switch.to_dict())

    @set_ev_cls(event.EventLinkAdd)
    def _event_link_add_handler(self, ev: Any) -> None:
        self._call_all("event_link_add", ev.link.to_dict())

    @set_ev_cls(event.EventLinkDelete)
    def _event_link_delete_handler(self, ev: Any) -> None:
        self._call_all("event_link_delete", ev.link.to_dict())

    @set_ev_cls(event.EventHostAdd)
    def _event_host_add_handler(self, ev: Any) -> None:
        self._call_all("event_host_add", ev.host.to_dict())

    def _call_all(self, method: str, what: dict[str, Any]) -> None:
        for client in self.rpc_clients:
            client.tell(method, what)


class WebSocketTopologyController(ControllerBase):
    """The path."""

    def __init__(self, req: Any, link: Any, data: Any, **config: Any):
        super().__init__(req, link, data, **config)
        self.app = data["app"]

    @websocket("topology", "/v1.0/topology/ws")
    def _websocket_handler(self, ws: Any) -> None:
        client = _Client(ws)
        self.app.rpc_clients.append(client)
        try:
            client.serve()
        finally:
            self.app.rpc_clients.remove(client)
