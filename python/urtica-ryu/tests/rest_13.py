"""A learning switch with an HTTP interface, a WebSocket, and methods for calls by JSON-RPC."""

import json

from ryu.app import simple_switch_13
from ryu.app.wsgi import ControllerBase, Response, WebSocketRPCServer, WSGIApplication, route, rpc_public, websocket
from ryu.controller import ofp_event
from ryu.controller.handler import MAIN_DISPATCHER, set_ev_cls
from ryu.lib import dpid as dpid_lib

APP = "rest_switch_app"
TABLE = "/simpleswitch/mactable/{dpid}"


class RestSwitch(simple_switch_13.SimpleSwitch13):
    _CONTEXTS = {"wsgi": WSGIApplication}

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.wsgi = kwargs["wsgi"]
        self.wsgi.register(RestController, {APP: self})

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def tell(self, ev):
        self.wsgi.websocketmanager.broadcast(f"packet-in of {ev.msg.datapath.id}")

    @rpc_public
    def add(self, first, second):
        return first + second


class RestController(ControllerBase):
    def __init__(self, req, link, data, **config):
        super().__init__(req, link, data, **config)
        self.app = data[APP]

    @route("table", TABLE, methods=["GET"], requirements={"dpid": dpid_lib.DPID_PATTERN})
    def get_table(self, req, dpid, **kwargs):
        table = self.app.mac_to_port.get(dpid_lib.str_to_dpid(dpid))
        if table is None:
            return Response(status=404)
        return Response(content_type="application/json", body=json.dumps(table))

    @route("table", TABLE, methods=["PUT"], requirements={"dpid": dpid_lib.DPID_PATTERN})
    def set_entry(self, req, dpid, **kwargs):
        entry = req.json if req.body else {}
        self.app.mac_to_port.setdefault(dpid_lib.str_to_dpid(dpid), {})[entry["mac"]] = entry["port"]
        return Response(status=201)

    @route("table", "/broken")
    def broken(self, req, **kwargs):
        raise RuntimeError("broken on purpose")

    @websocket("events", "/events")
    def events(self, ws):
        while (message := ws.wait()) is not None:
            ws.send(f"echo {message}")

    @websocket("calls", "/calls")
    def calls(self, ws):
        WebSocketRPCServer(ws, self.app).serve_forever()
