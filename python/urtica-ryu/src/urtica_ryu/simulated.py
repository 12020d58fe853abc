"""Ryu programs in a simulated network: ryu-manager's applications, whose tasks run on the network's time.

**What.** A Program is what `urtica.Net` runs instead of handlers: the network calls `connected` for each switch, and `advance`
when time has passed or a task has been woken; the program's tasks run within these calls alone.

**How.** Names, options, the manager, the baton and the standard library's patches are of the process. A program has its own,
which are in force while it runs, so that several networks may exist at a time, and the tests around them see nothing of it.
"""

from __future__ import annotations

import contextlib
import gc
import json
import math
import os
import random
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from urtica_ryu import use_names

use_names()

from ryu import cfg  # noqa: E402
from ryu.base import app_manager  # noqa: E402
from ryu.ofproto import ofproto_protocol  # noqa: E402

from urtica_ryu import hub, link, patched  # noqa: E402
from urtica_ryu.baton import Baton, Blocked, SimulatedClock  # noqa: E402
from urtica_ryu.link import VERSIONS, Connection  # noqa: E402
from urtica_ryu.loading import LoadError  # noqa: E402

#: The seconds of real time in which a program must wait for something.
PATIENCE_S = 30.0

#: The simulated seconds that applications may take to start.
START_WITHIN_S = 3600.0

#: The modules that programs' files have defined: each network has them anew.
_modules: set[str] = set()

# One program runs at a time, also where networks are in several threads.
_turn = threading.RLock()


class _Link:
    """Stands for the controller that listens."""

    def __init__(self, program: Program):
        self._program = program
        self._is_stopped = False

    def start(self) -> None:
        """Nothing is to be waited for."""

    def send(self, dpid: int, frame: bytes) -> bool:
        """Sends a frame; returns whether it was queued."""
        network = self._program.network
        return bool(network is not None and not self._is_stopped and network.send(dpid, frame))

    def stop(self) -> None:
        """Sends nothing from now on."""
        self._is_stopped = True


class _Values:
    """What is of the process, and of the program while it runs."""

    def __init__(self, program: Program, options: Mapping[str, Any], seed: int):
        self.baton = program.baton
        self.manager = app_manager.AppManager()
        self.bricks: dict[str, app_manager.RyuApp] = {}
        self.versions = set(program.numbers)
        self.options: tuple[dict[str, Any], dict[str, Any]] = ({}, {_name(name): _text(options[name]) for name in options})
        self.random: Any = random.Random(seed).getstate()
        self.link: Callable[[], Any] = lambda: program.link

    def exchange(self) -> None:
        """Puts these in force, and keeps those that were."""
        current = hub.baton()
        hub.use(self.baton)
        self.baton = current
        managers = app_manager.AppManager
        self.manager, managers._instance = managers._instance, self.manager  # type: ignore[assignment]
        self.bricks, app_manager.SERVICE_BRICKS = app_manager.SERVICE_BRICKS, self.bricks
        self.versions, ofproto_protocol._supported_versions = ofproto_protocol._supported_versions, self.versions
        self.options = cfg.CONF.exchange(self.options)
        state = random.getstate()
        random.setstate(self.random)
        self.random = state
        self.link = link.use(self.link)


class Program:
    """The applications of one simulated network."""

    def __init__(self, apps: Iterable[Any], seed: int = 0, openflow: str | None = None, options: Mapping[str, Any] | None = None):
        self.apps = [_application(app) for app in apps]
        self.numbers = [number for number, name in VERSIONS.items() if openflow in (None, name)]
        if not self.numbers:
            raise ValueError(f"'{openflow}' is not a version: expected '1.0' or '1.3'")
        #: Sends to switches, once the network is there.
        self.network: Any = None
        #: The exceptions that tasks and handlers have raised.
        self.raised: list[BaseException] = []
        self.baton = Baton(SimulatedClock(), self._wake)
        self.baton.on_error = self.raised.append
        self.baton.patience = PATIENCE_S
        #: What has ended the program.
        self.failure: Exception | None = None
        self._is_ended = False
        #: The way to the switches.
        self.link = _Link(self)
        self._values = _Values(self, options or {}, seed)
        self.manager = self._values.manager
        with self._in_force():
            # Tasks make locks, events and queues of their baton.
            self.manager.close_sem = hub.Semaphore()
            self._load(options or {})
            self.versions = [VERSIONS[number] for number in sorted(ofproto_protocol._supported_versions)]
        # The network's time begins now.
        self._began = self._now()

    def _now(self) -> float:
        return self.baton.now()

    def _wake(self) -> None:
        if self.network is not None:
            self.network.wake()

    @contextlib.contextmanager
    def _in_force(self) -> Iterator[None]:
        collects = gc.isenabled()
        with _turn, patched.simulated():
            # A network that is garbage must not be found in a task: it belongs to the thread that has made it.
            gc.disable()
            self._values.exchange()
            try:
                yield
            finally:
                self._values.exchange()
                if collects:
                    gc.enable()

    # Starting

    def _load(self, options: Mapping[str, Any]) -> None:
        """Loads and starts the applications, before the network's time begins."""
        for name in _modules:
            sys.modules.pop(name, None)
        _modules.clear()
        before = set(sys.modules)
        try:
            self._pass_until_done(start := Call(self.manager.start, (self.apps,)))
            start.result()
            for name in options:
                if not cfg.CONF.has(name):
                    raise LoadError(f"no application has the option {name}: expected one that is registered with ryu.cfg")
        except BaseException as error:
            if isinstance(error, Blocked):
                self.failure = error
            self.end()
            raise
        finally:
            folders = {Path(app).resolve().parent for app in self.apps if isinstance(app, str) and Path(app).is_file()}
            _modules.update(name for name in set(sys.modules) - before if _folder(name) in folders)

    def _pass_until_done(self, call: Call) -> None:
        """Lets the program's time pass until a call has ended, without the network."""
        following: float | None = self._now()
        while not call.is_done:
            if following is None or following > START_WITHIN_S:
                raise LoadError("the applications wait for ever in their start: expected constructors that return")
            following = self.baton.advance_to(following)

    # What the network calls

    def attach(self, network: Any) -> None:
        """Takes the way to the switches: `send(dpid, frame)` and `wake()`."""
        self.network = network

    def connected(self, dpid: int, version: int, peer: str) -> Connection:
        """Returns the handler of a switch's frames."""
        with self._in_force():
            return Connection(self.link, dpid, version, peer)

    def advance(self, now_ns: int) -> int | None:
        """Runs the tasks up to this time, in nanoseconds; returns the time of the first timer."""
        if self.failure is not None:
            raise self.failure
        try:
            with self._in_force():
                following = self.baton.advance_to(self._began + now_ns / 1e9)
        except Exception as error:
            self.failure = error
            raise
        # Not before the timer, however floating point rounds.
        return None if following is None else max(0, math.ceil((following - self._began) * 1e9) + 1)

    # What tests call

    def spawn(self, function: Callable[..., Any], *arguments: Any) -> Call:
        """Has a task call a function when the network runs."""
        with self._in_force():
            return Call(function, arguments)

    def request(self, method: str, path: str, body: Any = None) -> Call:
        """Has the applications' HTTP interface answer a request, without a server. A body that is no text is sent as JSON."""
        wsgi = sys.modules.get("ryu.app.wsgi")
        contexts = self.manager.contexts.values() if wsgi else ()
        interface = next((context for context in contexts if isinstance(context, wsgi.WSGIApplication)), None)  # type: ignore[union-attr]
        if wsgi is None or interface is None:
            raise ValueError('no application has an HTTP interface: expected _CONTEXTS = {"wsgi": WSGIApplication}')
        return self.spawn(wsgi.Request.blank(path, method=method, body=_data(body)).get_response, interface)

    def stop(self) -> Call:
        """Has the applications stopped when the network runs."""
        return self.spawn(self.manager.close)

    def end(self) -> None:
        """Ends all tasks."""
        if self._is_ended:
            return
        self._is_ended = True
        self.network = None
        if self.failure is not None:
            # A task that blocks cannot be ended.
            return
        with self._in_force(), contextlib.suppress(Blocked):
            self.baton.end()


class Call:
    """A call in a task of the program."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]):
        self._call = (function, arguments)
        self.value: Any = None
        self.error: BaseException | None = None
        self._task = hub.spawn(self._run)

    def _run(self) -> None:
        function, arguments = self._call
        try:
            self.value = function(*arguments)
        except hub.TaskExit:
            raise
        except BaseException as error:
            self.error = error

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""
        return self._task.dead

    def result(self) -> Any:
        """Returns what the function has returned, or raises what it has raised."""
        if self.error is not None:
            raise self.error
        return self.value


def _data(body: Any) -> bytes:
    if body is None or isinstance(body, bytes):
        return body or b""
    return (body if isinstance(body, str) else json.dumps(body)).encode()


def _application(app: Any) -> Any:
    """Returns the name of a file or module, or a class of ours."""
    if isinstance(app, (str, os.PathLike)):
        return os.fspath(app)
    if isinstance(app, type) and issubclass(app, app_manager.RyuApp):
        return app
    if isinstance(app, type) and any(base.__name__ in ("RyuApp", "OSKenApp") for base in app.__mro__):
        theirs = next(base for base in app.__mro__ if base.__name__ in ("RyuApp", "OSKenApp"))
        source = getattr(sys.modules.get(theirs.__module__), "__file__", theirs.__module__)
        name = app.__name__
        raise LoadError(f"{name} is derived from the class of {source}: call urtica_ryu.use_names() before it is imported")
    raise LoadError(f"{app!r} is no Ryu program: expected a file, a module's name, or a class derived from app_manager.RyuApp")


def _folder(module: str) -> Path | None:
    file = getattr(sys.modules.get(module), "__file__", None)
    return Path(file).resolve().parent if file else None


def _name(option: str) -> str:
    return option.replace("-", "_")


def _text(value: Any) -> str | bool:
    """Returns a value as the command line has it."""
    if isinstance(value, bool):
        return value
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
