"""The network, as applications ask for it. Links are known with `--observe-links`."""

from __future__ import annotations

from typing import Any

from ryu.base import app_manager
from ryu.topology import event


def get_switch(app: Any, dpid: int | None = None) -> list[Any]:
    """Returns a switch in a list, empty if it is not connected; or all."""
    return list(app.send_request(event.EventSwitchRequest(dpid)).switches)


def get_all_switch(app: Any) -> list[Any]:
    """Returns all switches."""
    return get_switch(app)


def get_link(app: Any, dpid: int | None = None) -> list[Any]:
    """Returns the links that leave a switch; or all."""
    return list(app.send_request(event.EventLinkRequest(dpid)).links)


def get_all_link(app: Any) -> list[Any]:
    """Returns all links."""
    return get_link(app)


def get_host(app: Any, dpid: int | None = None) -> list[Any]:
    """Returns the hosts at a switch; or all."""
    return list(app.send_request(event.EventHostRequest(dpid)).hosts)


def get_all_host(app: Any) -> list[Any]:
    """Returns all hosts."""
    return get_host(app)


app_manager.require_app("ryu.topology.switches", api_style=True)
