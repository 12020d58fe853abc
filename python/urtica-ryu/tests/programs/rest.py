"""An access list with an HTTP interface: requests add, list and delete rules, which become entries of all switches."""

import json

from ryu.app.wsgi import ControllerBase, Response, WSGIApplication, route
from ryu.controller import ofp_event
from ryu.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from ryu.lib.packet import ether_types
from switching import Switching

RULES = "/acl/rules"


class AccessList(Switching):
    _CONTEXTS = {"wsgi": WSGIApplication}

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.datapaths = {}
        self.rules = {}
        self.last = 0
        kwargs["wsgi"].register(AccessController, {"app": self})

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def state_change(self, ev):
        if ev.state == DEAD_DISPATCHER:
            self.datapaths.pop(ev.datapath.id, None)
            return
        self.datapaths[ev.datapath.id] = ev.datapath
        for number, rule in self.rules.items():
            self.install(ev.datapath, number, rule)

    def match(self, dp, in_port, pkt, eth):
        return dp.ofproto_parser.OFPMatch(eth_src=eth.src, eth_dst=eth.dst)

    def rule_match(self, dp, rule):
        fields = {"eth_type": ether_types.ETH_TYPE_IP}
        fields.update({f"ipv4_{name}": rule[name] for name in ("src", "dst") if name in rule})
        return dp.ofproto_parser.OFPMatch(**fields)

    def install(self, dp, number, rule):
        self.add_flow(dp, rule.get("priority", 100), self.rule_match(dp, rule), [], cookie=number)

    def add(self, rule):
        self.last += 1
        self.rules[self.last] = rule
        for _, dp in sorted(self.datapaths.items()):
            self.install(dp, self.last, rule)
        return self.last

    def remove(self, number):
        rule = self.rules.pop(number)
        for _, dp in sorted(self.datapaths.items()):
            ofp, parser = dp.ofproto, dp.ofproto_parser
            dp.send_msg(
                parser.OFPFlowMod(
                    datapath=dp,
                    cookie=number,
                    cookie_mask=0xFFFFFFFFFFFFFFFF,
                    command=ofp.OFPFC_DELETE,
                    out_port=ofp.OFPP_ANY,
                    out_group=ofp.OFPG_ANY,
                    match=self.rule_match(dp, rule),
                )
            )


class AccessController(ControllerBase):
    def __init__(self, req, link, data, **config):
        super().__init__(req, link, data, **config)
        self.app = data["app"]

    @route("acl", RULES, methods=["GET"])
    def list(self, req, **kwargs):
        return Response(content_type="application/json", text=json.dumps(self.app.rules))

    @route("acl", RULES, methods=["POST"])
    def add(self, req, **kwargs):
        try:
            rule = req.json
        except ValueError:
            return Response(status=400, text="the body is not JSON\n")
        if not set(rule) <= {"src", "dst", "priority"}:
            return Response(status=400, text="a rule has src, dst and priority\n")
        return Response(status=201, content_type="application/json", text=json.dumps({"rule": self.app.add(rule)}))

    @route("acl", RULES + "/{number}", methods=["DELETE"], requirements={"number": r"\d+"})
    def delete(self, req, number, **kwargs):
        if int(number) not in self.app.rules:
            return Response(status=404)
        self.app.remove(int(number))
        return Response(status=204)
