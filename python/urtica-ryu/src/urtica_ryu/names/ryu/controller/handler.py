"""Which methods handle which events, in which states of a switch."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any, TypeVar

HANDSHAKE_DISPATCHER = "handshake"
CONFIG_DISPATCHER = "config"
MAIN_DISPATCHER = "main"
DEAD_DISPATCHER = "dead"

Method = TypeVar("Method", bound=Callable[..., Any])


class Caller:
    """How a method handles a class of events."""

    def __init__(self, dispatchers: list[str], ev_source: str | None):
        #: The states of the switch before the event; none for all.
        self.dispatchers = dispatchers
        #: The module of the event's class, by whose application it is sent; None if the method is called otherwise.
        self.ev_source = ev_source


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple, set)) else [value]


def _decorator(ev_cls: Any, dispatchers: Any, has_source: bool) -> Callable[[Method], Method]:
    def decorate(method: Method) -> Method:
        callers = vars(method).setdefault("callers", {})
        for each in _list(ev_cls):
            callers[each] = Caller(_list(dispatchers), each.__module__ if has_source else None)
        return method

    return decorate


def set_ev_cls(ev_cls: Any, dispatchers: Any = None) -> Callable[[Method], Method]:
    """Makes a method a handler of events of a class, or of several, in these states of the switch."""
    return _decorator(ev_cls, dispatchers, True)


def set_ev_handler(ev_cls: Any, dispatchers: Any = None) -> Callable[[Method], Method]:
    """Like set_ev_cls, for events that the application sends to itself."""
    return _decorator(ev_cls, dispatchers, False)


def handlers_of(instance: Any) -> list[tuple[Any, Any, Caller]]:
    """Returns an object's handlers in the order of their names: class of events, method, caller."""
    found = []
    for _, method in inspect.getmembers(instance, lambda member: inspect.ismethod(member) or inspect.isfunction(member)):
        for ev_cls, caller in getattr(method, "callers", {}).items():
            found.append((ev_cls, method, caller))
    return found


def register_instance(instance: Any) -> None:
    """Registers an application's handlers."""
    for ev_cls, method, _ in handlers_of(instance):
        instance.register_handler(ev_cls, method)


def register_service(service: str) -> None:
    """Sets the module of the application that sends the calling module's events: it is loaded for those that handle them."""
    frame = inspect.currentframe()
    if frame is not None and frame.f_back is not None:
        sys.modules[frame.f_back.f_globals["__name__"]]._SERVICE_NAME = service  # type: ignore[attr-defined]


def get_dependent_services(cls: Any) -> list[str]:
    """Returns the modules of the applications that a class needs."""
    services = []
    for ev_cls, _, _ in handlers_of(cls):
        service = getattr(sys.modules[ev_cls.__module__], "_SERVICE_NAME", None)
        if service and cls.__module__ != service:
            services.append(service)
    services += getattr(sys.modules[cls.__module__], "_REQUIRED_APP", [])
    return list(dict.fromkeys(services))
