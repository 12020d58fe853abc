"""Applications: their events, and the manager that loads, starts and stops them."""

from __future__ import annotations

import inspect
import itertools
import logging
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from ryu import cfg
from ryu.controller import handler
from ryu.controller.event import EventBase, EventReplyBase, EventRequestBase
from ryu.ofproto import ofproto_protocol
from urtica_ryu import hub
from urtica_ryu.loading import LoadError, import_application

LOG = logging.getLogger("ryu.base.app_manager")

#: The applications, by name.
SERVICE_BRICKS: dict[str, RyuApp] = {}

#: The number of events that wait for an application; then what reads from switches waits.
MAX_EVENTS = 128

#: The number of events in a row from one switch while others wait for space.
_SHARE = MAX_EVENTS // 2

#: Those of methods without the decorator.
_NO_CALLERS: dict[Any, Any] = {}


def wait_for_space() -> None:
    """Has the calling task wait from now on while an application has too many events.

    Applications themselves never do: they might wait in a circle.
    """
    task = hub.baton().current()
    if task is not None:
        task.is_source = True


def lookup_service_brick(name: str) -> Any:
    """Returns the application of a name; None without one."""
    return SERVICE_BRICKS.get(name)


def _sources_of(ev_cls: Any) -> list[RyuApp]:
    """Returns the applications that send events of a class: by the last part of its module's name, or by their _EVENTS."""
    named = lookup_service_brick(ev_cls.__module__.split(".")[-1])
    bricks = [named] if named is not None else []
    return bricks + [brick for brick in SERVICE_BRICKS.values() if ev_cls in brick._EVENTS and brick is not named]


def register_app(app: RyuApp) -> None:
    """Adds an application."""
    if app.name in SERVICE_BRICKS:
        raise LoadError(f"two applications have the name {app.name}: expected different names")
    SERVICE_BRICKS[app.name] = app
    handler.register_instance(app)


def unregister_app(app: RyuApp) -> None:
    """Removes an application."""
    SERVICE_BRICKS.pop(app.name)


def require_app(app_name: str, api_style: bool = False) -> None:
    """Has an application loaded, too; with api_style, for the module that imports the calling one."""
    frames = (inspect.getmodule(frame.frame) for frame in inspect.stack())
    modules = [module for module in frames if module is not None and not module.__name__.startswith("importlib")]
    module = modules[2 if api_style else 1]
    required = vars(module).setdefault("_REQUIRED_APP", [])
    required.append(app_name)


class _Stop(EventBase):
    """Ends an application's loop."""


class RyuApp:
    """The base class of applications."""

    #: Objects that applications share, by key: classes, which the manager makes and passes to the constructor.
    _CONTEXTS: ClassVar[dict[str, Any]] = {}
    #: The classes of events that it sends, if they are of another module.
    _EVENTS: ClassVar[list[Any]] = []
    #: The versions of OpenFlow that it supports; None for all.
    OFP_VERSIONS: ClassVar[Any] = None

    def __init__(self, *_args: Any, **_kwargs: Any):
        super().__init__()
        self.name = type(self).__name__
        self.event_handlers: dict[Any, list[Any]] = {}
        self.observers: dict[Any, dict[str, set[str]]] = {}
        self.threads: list[hub.HubThread] = []
        self.main_thread: hub.HubThread | None = None
        self.events = hub.Queue(MAX_EVENTS, _SHARE)
        self.logger = logging.getLogger(getattr(type(self), "LOGGER_NAME", self.name))
        self.CONF = cfg.CONF
        self.is_active = True

    @classmethod
    def context_iteritems(cls) -> Iterator[tuple[str, Any]]:
        """Returns the contexts."""
        return iter(cls._CONTEXTS.items())

    def start(self) -> Any:
        """Starts the loop of events. A task that is returned is killed at the end."""
        self.threads.append(hub.spawn(self._event_loop))
        return None

    def stop(self) -> None:
        """Stops the loop, after the events that wait."""
        if self.main_thread:
            hub.kill(self.main_thread)
        self.is_active = False
        self._send_event(_Stop(), None)
        hub.joinall(self.threads)

    def set_main_thread(self, thread: hub.HubThread) -> None:
        """Sets the task that stop kills."""
        self.main_thread = thread

    def close(self) -> None:
        """Called when it has stopped."""

    # Handlers and observers

    def register_handler(self, ev_cls: Any, method: Any) -> None:
        """Adds a handler."""
        self.event_handlers.setdefault(ev_cls, []).append(method)

    def unregister_handler(self, ev_cls: Any, method: Any) -> None:
        """Removes a handler."""
        handlers = self.event_handlers[ev_cls]
        handlers.remove(method)
        if not handlers:
            del self.event_handlers[ev_cls]

    def get_handlers(self, ev: Any, state: str | None = None) -> list[Any]:
        """Returns the handlers of an event in a state."""
        ev_cls = type(ev)
        return [method for method in self.event_handlers.get(ev_cls, ()) if self._handles(method, ev_cls, state)]

    @staticmethod
    def _handles(method: Any, ev_cls: Any, state: str | None) -> bool:
        if state is None:
            return True
        caller = getattr(method, "callers", _NO_CALLERS).get(ev_cls)
        return caller is None or not caller.dispatchers or state in caller.dispatchers

    def register_observer(self, ev_cls: Any, name: str, states: Iterable[str] | None = None) -> None:
        """Adds an application that gets this one's events of a class."""
        self.observers.setdefault(ev_cls, {}).setdefault(name, set()).update(states or ())

    def unregister_observer(self, ev_cls: Any, name: str) -> None:
        """Removes an observer."""
        self.observers.get(ev_cls, {}).pop(name)

    def unregister_observer_all_event(self, name: str) -> None:
        """Removes an observer of all classes."""
        for observers in self.observers.values():
            observers.pop(name, None)

    def observe_event(self, ev_cls: Any, states: Iterable[str] | None = None) -> None:
        """Has other applications' events of a class sent to this one."""
        for brick in _sources_of(ev_cls):
            brick.register_observer(ev_cls, self.name, states)

    def unobserve_event(self, ev_cls: Any) -> None:
        """Undoes observe_event."""
        for brick in _sources_of(ev_cls):
            brick.unregister_observer(ev_cls, self.name)

    def get_observers(self, ev: Any, state: str | None) -> list[str]:
        """Returns the names of the observers of an event in a state."""
        observers = self.observers.get(type(ev), {})
        return [name for name, states in observers.items() if not state or not states or state in states]

    # Events

    def send_event(self, name: str, ev: Any, state: str | None = None) -> None:
        """Sends an event to the application of a name."""
        app = SERVICE_BRICKS.get(name)
        if app is None:
            LOG.debug("no application %s: %s of %s is lost", name, type(ev).__name__, self.name)
            return
        if isinstance(ev, EventRequestBase):
            ev.src = self.name
        app._send_event(ev, state)

    def send_event_to_observers(self, ev: Any, state: str | None = None) -> None:
        """Sends an event to the observers."""
        for observer in self.get_observers(ev, state):
            self.send_event(observer, ev, state)

    def send_request(self, req: EventRequestBase) -> Any:
        """Sends a request to the application `req.dst`, and waits for the reply."""
        req.sync = True
        req.reply_q = hub.Queue()
        self.send_event(req.dst, req)
        return req.reply_q.get()

    def reply_to_request(self, req: EventRequestBase, rep: EventReplyBase) -> None:
        """Answers a request."""
        rep.dst = req.src
        if req.sync:
            req.reply_q.put(rep)
        else:
            self.send_event(rep.dst, rep)

    def _send_event(self, ev: Any, state: str | None) -> None:
        task = hub.baton().current()
        if task is not None and task.is_source:
            self.events.put((ev, state))
        else:
            self.events.push((ev, state))

    def _event_loop(self) -> None:
        while self.is_active or not self.events.empty():
            ev, state = self.events.get()
            if isinstance(ev, _Stop):
                continue
            for method in self.get_handlers(ev, state):
                self._call(method, ev)

    def _call(self, method: Any, ev: Any) -> None:
        try:
            method(ev)
        except hub.TaskExit:
            raise
        except BaseException as error:
            name = getattr(method, "__name__", repr(method))
            LOG.exception("%s: handler %s raised an exception on %s", self.name, name, type(ev).__name__)
            hub.baton().note_error(error)


class AppManager:
    """Loads, starts and stops applications."""

    _instance: ClassVar[AppManager | None] = None

    def __init__(self) -> None:
        self.applications_cls: dict[str, Any] = {}
        self.applications: dict[str, RyuApp] = {}
        self.contexts_cls: dict[str, Any] = {}
        self.contexts: dict[str, Any] = {}
        self.close_sem = hub.Semaphore()

    @staticmethod
    def get_instance() -> AppManager:
        """Returns the manager."""
        if AppManager._instance is None:
            AppManager._instance = AppManager()
        return AppManager._instance

    @staticmethod
    def run_apps(app_lists: list[str]) -> None:
        """Runs applications until their tasks end."""
        manager = AppManager.get_instance()
        services = manager.start(app_lists)
        try:
            hub.joinall(services)
        finally:
            manager.close()

    # Loading

    def load_app(self, name: str) -> Any:
        """Imports a module or file; returns its first class of applications by name, None without one."""
        module = import_application(name)

        def is_application(member: Any) -> bool:
            return inspect.isclass(member) and issubclass(member, RyuApp) and member.__module__ == module.__name__

        return next((cls for _, cls in inspect.getmembers(module, is_application)), None)

    def load_apps(self, app_lists: Iterable[str]) -> None:
        """Loads applications, and those that they need."""
        names = list(itertools.chain.from_iterable(app.split(",") for app in app_lists))
        for name in names:
            if name in self.applications_cls or name in self._context_modules():
                continue
            LOG.info("loading app %s", name)
            cls = self.load_app(name)
            if cls is None:
                LOG.warning("%s has no application: expected a class derived from app_manager.RyuApp", name)
                continue
            self.applications_cls[name] = cls
            names += [service for service in self._needs(cls) if service not in names]

    def load_class(self, cls: Any) -> None:
        """Adds an application by its class, and loads those that it needs."""
        name = cls.__module__
        self.applications_cls[f"{name}.{cls.__name__}" if name in self.applications_cls else name] = cls
        self.load_apps(self._needs(cls))

    def _context_modules(self) -> list[str]:
        return [cls.__module__ for cls in self.contexts_cls.values()]

    def _needs(self, cls: Any) -> list[str]:
        services = []
        for key, context in cls.context_iteritems():
            if self.contexts_cls.setdefault(key, context) is not context:
                raise LoadError(f"two applications have different classes for the context {key}: expected one class")
            if issubclass(context, RyuApp):
                services += handler.get_dependent_services(context)
        services += handler.get_dependent_services(cls)
        return [service for service in services if service not in self._context_modules()]

    # Starting

    def start(self, apps: Iterable[Any]) -> list[hub.HubThread]:
        """Loads and starts applications, by files, modules or classes; returns the tasks that they have started."""
        apps = list(apps)
        for app in apps:
            if isinstance(app, str):
                self.load_apps([app])
            else:
                self.load_class(app)
        if not self.applications_cls:
            raise LoadError(f"no application in {', '.join(apps)}: expected a class derived from app_manager.RyuApp")
        return self.instantiate_apps(**self.create_contexts())

    def create_contexts(self) -> dict[str, Any]:
        """Makes the shared objects."""
        for key, cls in self.contexts_cls.items():
            LOG.info("creating context %s", key)
            self.contexts[key] = self._instantiate(None, cls) if issubclass(cls, RyuApp) else cls()
        return self.contexts

    def _instantiate(self, app_name: str | None, cls: Any, *args: Any, **kwargs: Any) -> Any:
        LOG.info("instantiating app %s of %s", app_name, cls.__name__)
        if cls.OFP_VERSIONS is not None:
            ofproto_protocol.set_app_supported_versions(cls.OFP_VERSIONS)
        app = cls(*args, **kwargs)
        register_app(app)
        self.applications[app.name] = app
        return app

    def instantiate(self, cls: Any, *args: Any, **kwargs: Any) -> Any:
        """Makes one application, without starting it."""
        app = self._instantiate(None, cls, *args, **kwargs)
        self._update_bricks()
        return app

    def instantiate_apps(self, *args: Any, **kwargs: Any) -> list[hub.HubThread]:
        """Makes and starts all applications; returns the tasks that they have started."""
        for app_name, cls in self.applications_cls.items():
            self._instantiate(app_name, cls, *args, **kwargs)
        self._update_bricks()
        threads = []
        for app in list(self.applications.values()):
            thread = app.start()
            if thread is not None:
                app.set_main_thread(thread)
                threads.append(thread)
        return threads

    @staticmethod
    def _update_bricks() -> None:
        for app in SERVICE_BRICKS.values():
            for ev_cls, _, caller in handler.handlers_of(app):
                if caller.ev_source:
                    for brick in _sources_of(ev_cls):
                        brick.register_observer(ev_cls, app.name, caller.dispatchers)

    # Stopping

    def uninstantiate(self, name: str) -> None:
        """Stops an application."""
        app = self.applications.pop(name)
        unregister_app(app)
        for other in SERVICE_BRICKS.values():
            other.unregister_observer_all_event(name)
        app.stop()
        app.close()

    def close(self) -> None:
        """Stops all applications."""
        with self.close_sem:
            for name in list(self.applications):
                self.uninstantiate(name)
            for context in self.contexts.values():
                close = getattr(context, "close", None)
                if callable(close):
                    close()
            self.contexts.clear()


# os-ken's name.
OSKenApp = RyuApp
