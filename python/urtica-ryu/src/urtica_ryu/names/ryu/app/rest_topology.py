"""The network over HTTP: `GET /v1.0/topology/switches`, `/links` and `/hosts`, each also of one switch.

Links and hosts are known with `--observe-links`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, ClassVar

from ryu.app.wsgi import ControllerBase, Response, WSGIApplication, route
from ryu.base import app_manager
from ryu.lib import dpid as dpid_lib
from ryu.topology.api import get_host, get_link, get_switch

_OF_SWITCH = {"dpid": dpid_lib.DPID_PATTERN}


class TopologyAPI(app_manager.RyuApp):
    """Answers requests about the network."""

    _CONTEXTS: ClassVar[dict[str, Any]] = {"wsgi": WSGIApplication}

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        kwargs["wsgi"].register(TopologyController, {"topology_api_app": self})


class TopologyController(ControllerBase):
    """The paths."""

    def __init__(self, req: Any, link: Any, data: Any, **config: Any):
        super().__init__(req, link, data, **config)
        self.topology_api_app = data["topology_api_app"]

    def _listed(self, get: Callable[..., list[Any]], dpid: str | None) -> Response:
        found = get(self.topology_api_app, None if dpid is None else dpid_lib.str_to_dpid(dpid))
        return Response(content_type="application/json", body=json.dumps([each.to_dict() for each in found]))

    @route("topology", "/v1.0/topology/switches", methods=["GET"])
    def list_switches(self, req: Any, **_parts: Any) -> Response:
        """All switches."""
        return self._listed(get_switch, None)

    @route("topology", "/v1.0/topology/switches/{dpid}", methods=["GET"], requirements=_OF_SWITCH)
    def get_switch(self, req: Any, dpid: str, **_parts: Any) -> Response:
        """One switch, in a list."""
        return self._listed(get_switch, dpid)

    @route("topology", "/v1.0/topology/links", methods=["GET"])
    def list_links(self, req: Any, **_parts: Any) -> Response:
        """All links."""
        return self._listed(get_link, None)

    @route("topology", "/v1.0/topology/links/{dpid}", methods=["GET"], requirements=_OF_SWITCH)
    def get_links(self, req: Any, dpid: str, **_parts: Any) -> Response:
        """The links that leave a switch."""
        return self._listed(get_link, dpid)

    @route("topology", "/v1.0/topology/hosts", methods=["GET"])
    def list_hosts(self, req: Any, **_parts: Any) -> Response:
        """All hosts."""
        return self._listed(get_host, None)

    @route("topology", "/v1.0/topology/hosts/{dpid}", methods=["GET"], requirements=_OF_SWITCH)
    def get_hosts(self, req: Any, dpid: str, **_parts: Any) -> Response:
        """The hosts at a switch."""
        return self._listed(get_host, dpid)
