"""Switches over HTTP: their state by `GET /stats/…/<dpid>`, changes by `POST`. Ryu's guide describes the paths."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any, ClassVar

from ryu.app.wsgi import ControllerBase, Response, WSGIApplication, route
from ryu.base import app_manager
from ryu.controller import dpset, ofp_event
from ryu.controller.handler import MAIN_DISPATCHER, set_ev_cls
from ryu.lib import ofctl_v1_0, ofctl_v1_3
from ryu.ofproto import ofproto_v1_0, ofproto_v1_3
from urtica_ryu.ofctl import integer

_OFCTL = {ofproto_v1_0.OFP_VERSION: ofctl_v1_0, ofproto_v1_3.OFP_VERSION: ofctl_v1_3}

#: The functions of `ofctl_v1_0` and `ofctl_v1_3` that answer, by path.
_STATS = {
    "desc": "get_desc_stats",
    "flow": "get_flow_stats",
    "aggregateflow": "get_aggregate_flow_stats",
    "table": "get_table_stats",
    "tablefeatures": "get_table_features",
    "port": "get_port_stats",
    "queue": "get_queue_stats",
    "queueconfig": "get_queue_config",
    "meterfeatures": "get_meter_features",
    "meterconfig": "get_meter_config",
    "meter": "get_meter_stats",
    "groupfeatures": "get_group_features",
    "groupdesc": "get_group_desc",
    "group": "get_group_stats",
    "portdesc": "get_port_desc",
    "role": "get_role",
}
#: Those of one port, queue, group or meter where the path goes on.
_OF_ONE = ("port", "queue", "queueconfig", "meter", "meterconfig", "group")
#: Those whose list then has only the element with this key.
_PICKED = {"groupdesc": "group_id", "portdesc": "port_no"}
_ENTRIES = {"flowentry": "mod_flow_entry", "groupentry": "mod_group_entry", "meterentry": "mod_meter_entry"}
_COMMANDS = {
    "flowentry": {
        "add": ofproto_v1_3.OFPFC_ADD,
        "modify": ofproto_v1_3.OFPFC_MODIFY,
        "modify_strict": ofproto_v1_3.OFPFC_MODIFY_STRICT,
        "delete": ofproto_v1_3.OFPFC_DELETE,
        "delete_strict": ofproto_v1_3.OFPFC_DELETE_STRICT,
    },
    "groupentry": {
        "add": ofproto_v1_3.OFPGC_ADD,
        "modify": ofproto_v1_3.OFPGC_MODIFY,
        "delete": ofproto_v1_3.OFPGC_DELETE,
    },
    "meterentry": {
        "add": ofproto_v1_3.OFPMC_ADD,
        "modify": ofproto_v1_3.OFPMC_MODIFY,
        "delete": ofproto_v1_3.OFPMC_DELETE,
    },
}
_REPLIES = [
    getattr(ofp_event, f"EventOFP{name}")
    for name in (
        "DescStatsReply",
        "FlowStatsReply",
        "AggregateStatsReply",
        "TableStatsReply",
        "TableFeaturesStatsReply",
        "PortStatsReply",
        "QueueStatsReply",
        "MeterStatsReply",
        "MeterFeaturesStatsReply",
        "MeterConfigStatsReply",
        "GroupStatsReply",
        "GroupFeaturesStatsReply",
        "GroupDescStatsReply",
        "PortDescStatsReply",
        "SwitchFeatures",
        "QueueGetConfigReply",
        "RoleReply",
    )
]


class RestStatsApi(app_manager.RyuApp):
    """Answers requests about switches."""

    OFP_VERSIONS: ClassVar[Any] = list(_OFCTL)
    _CONTEXTS: ClassVar[dict[str, Any]] = {"dpset": dpset.DPSet, "wsgi": WSGIApplication}

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.dpset = kwargs["dpset"]
        self.waiters: dict[Any, Any] = {}
        kwargs["wsgi"].register(StatsController, {"dpset": self.dpset, "waiters": self.waiters})

    @set_ev_cls(_REPLIES, MAIN_DISPATCHER)
    def stats_reply_handler(self, ev: Any) -> None:
        """Gives a reply to the request that waits for it."""
        msg = ev.msg
        waiting = self.waiters.get(msg.datapath.id, {})
        if msg.xid not in waiting:
            return
        done, msgs = waiting[msg.xid]
        msgs.append(msg)
        if getattr(msg, "flags", 0) & ofproto_v1_3.OFPMPF_REPLY_MORE:
            return
        del waiting[msg.xid]
        done.set()


class _Refused(Exception):
    """A request that is answered with this status and sentence."""

    def __init__(self, status: int, sentence: str):
        super().__init__(sentence)
        self.status = status


def _answered(method: Callable[..., Any]) -> Callable[..., Response]:
    """Makes a method's result JSON, and its refusals responses."""

    @functools.wraps(method)
    def answer(self: Any, req: Any, **parts: Any) -> Response:
        try:
            result = method(self, req, **parts)
        except _Refused as refused:
            return Response(status=refused.status, content_type="text/plain", text=f"{refused}\n")
        except ValueError as error:
            return Response(status=400, content_type="text/plain", text=f"{error}\n")
        if result is None:
            return Response(status=200)
        return Response(content_type="application/json", body=json.dumps(result).encode())

    return answer


class StatsController(ControllerBase):
    """The paths."""

    def __init__(self, req: Any, link: Any, data: Any, **config: Any):
        super().__init__(req, link, data, **config)
        self.dpset = data["dpset"]
        self.waiters = data["waiters"]

    def _switch(self, dpid: Any) -> tuple[Any, Any]:
        """Returns a switch, and the module of its version."""
        dp = self.dpset.get(integer(dpid))
        if dp is None:
            raise _Refused(404, f"switch {dpid} is not connected")
        return dp, _OFCTL[dp.ofproto.OFP_VERSION]

    @staticmethod
    def _body(req: Any) -> dict[str, Any]:
        try:
            body = json.loads(req.body) if req.body else {}
        except ValueError as error:
            raise _Refused(400, f"the body is no JSON: {error}") from None
        if not isinstance(body, dict):
            raise _Refused(400, "the body is no object: expected one such as {}")
        return body

    @staticmethod
    def _function(ofctl: Any, name: str) -> Any:
        found = getattr(ofctl, name, None)
        if found is None:
            module = ofctl.__name__.rpartition(".")[2]
            raise _Refused(501, f"{module} has no {name}: the switch speaks another version of OpenFlow")
        return found

    @route("stats", "/stats/switches", methods=["GET"])
    @_answered
    def get_dpids(self, req: Any, **_parts: Any) -> Any:
        """The switches that are connected."""
        return [dpid for dpid, _ in self.dpset.get_all()]

    @route("stats", "/stats/{what}/{dpid}", methods=["GET"])
    @_answered
    def get_stats(self, req: Any, what: str, dpid: str, **_parts: Any) -> Any:
        """What a switch says of all."""
        return self._stats(what, dpid, [])

    @route("stats", "/stats/{what}/{dpid}/{first}", methods=["GET"])
    @_answered
    def get_stats_of(self, req: Any, what: str, dpid: str, first: str, **_parts: Any) -> Any:
        """What a switch says of a port, a group or a meter."""
        return self._stats(what, dpid, [first])

    @route("stats", "/stats/queue/{dpid}/{port}/{queue_id}", methods=["GET"])
    @_answered
    def get_queue_stats(self, req: Any, dpid: str, port: str, queue_id: str, **_parts: Any) -> Any:
        """The counters of a queue."""
        return self._stats("queue", dpid, [port, queue_id])

    def _stats(self, what: str, dpid: str, rest: list[str]) -> Any:
        if what not in _STATS or (rest and what not in _OF_ONE and what not in _PICKED):
            raise _Refused(404, f"there is no /stats/{what}/…")
        dp, ofctl = self._switch(dpid)
        get = self._function(ofctl, _STATS[what])
        if what not in _PICKED:
            return get(dp, self.waiters, *(None if part == "ALL" else part for part in rest))
        found = get(dp, self.waiters)
        if rest:
            key = _PICKED[what]
            found = {of: [each for each in rows if str(each[key]) == rest[0].upper()] for of, rows in found.items()}
        return found

    @route("stats", "/stats/{what}/{dpid}", methods=["POST"], requirements={"what": "flow|aggregateflow"})
    @_answered
    def get_filtered(self, req: Any, what: str, dpid: str, **_parts: Any) -> Any:
        """Entries that a filter names."""
        dp, ofctl = self._switch(dpid)
        return self._function(ofctl, _STATS[what])(dp, self.waiters, self._body(req))

    @route("stats", "/stats/{what}/{cmd}", methods=["POST"], requirements={"what": "flowentry|groupentry|meterentry"})
    @_answered
    def mod_entry(self, req: Any, what: str, cmd: str, **_parts: Any) -> None:
        """Changes an entry, a group or a meter."""
        commands = _COMMANDS[what]
        if cmd not in commands:
            raise _Refused(404, f"there is no command {cmd!r}: expected one of {', '.join(commands)}")
        body = self._body(req)
        dp, ofctl = self._switch(body.get("dpid", ""))
        self._function(ofctl, _ENTRIES[what])(dp, body, commands[cmd])

    @route("stats", "/stats/flowentry/clear/{dpid}", methods=["DELETE"])
    @_answered
    def delete_flow_entry(self, req: Any, dpid: str, **_parts: Any) -> None:
        """Deletes all entries."""
        dp, ofctl = self._switch(dpid)
        flow = {} if ofctl is ofctl_v1_0 else {"table_id": ofproto_v1_3.OFPTT_ALL}
        ofctl.mod_flow_entry(dp, flow, ofproto_v1_3.OFPFC_DELETE)

    @route("stats", "/stats/portdesc/modify", methods=["POST"])
    @_answered
    def mod_port_behavior(self, req: Any, **_parts: Any) -> None:
        """Changes a port; what the body does not say stays."""
        body = self._body(req)
        dp, ofctl = self._switch(body.get("dpid", ""))
        number = ofctl.PORTS.number(body.get("port_no", 0))
        known = (dp.ports or {}).get(number)
        if known is None:
            raise _Refused(404, f"switch {dp.id} has no port {number}")
        ofctl.mod_port_behavior(dp, {"hw_addr": known.hw_addr, "advertise": known.advertised, **body})

    @route("stats", "/stats/experimenter/{dpid}", methods=["POST"])
    @_answered
    def send_experimenter(self, req: Any, dpid: str, **_parts: Any) -> None:
        """Sends an experimenter's message."""
        dp, ofctl = self._switch(dpid)
        ofctl.send_experimenter(dp, self._body(req))

    @route("stats", "/stats/role", methods=["POST"])
    @_answered
    def set_role(self, req: Any, **_parts: Any) -> None:
        """Asks for another role."""
        body = self._body(req)
        dp, ofctl = self._switch(body.get("dpid", ""))
        self._function(ofctl, "set_role")(dp, body)
