"""HTTP interfaces of applications: classes of controllers whose methods answer requests, WebSockets, and calls by JSON-RPC.

An application has `_CONTEXTS = {"wsgi": WSGIApplication}`, and registers its controllers. `--wsapi-host` and `--wsapi-port` say
where the server listens: by default at port 8080 of all addresses.
"""

from __future__ import annotations

import inspect
import itertools
import json
import logging
from collections.abc import Callable, Iterable
from typing import Any

import webob.dec
import webob.exc
from routes import Mapper
from routes.util import URLGenerator
from webob.request import Request as _WebobRequest
from webob.response import Response as _WebobResponse

from ryu import cfg
from urtica_ryu import hub
from urtica_ryu.loading import LoadError
from urtica_ryu.web import Server, WebSocket, WebSocketError

LOG = logging.getLogger("ryu.app.wsgi")

CONF = cfg.CONF
CONF.register_cli_opts(
    [
        cfg.StrOpt("wsapi-host", default="", help="the address of the HTTP server (default: all)"),
        cfg.IntOpt("wsapi-port", default=8080, help="the port of the HTTP server"),
    ]
)

HEX_PATTERN = r"0x[0-9a-z]+"
DIGIT_PATTERN = r"[1-9][0-9]*"

CHARSET = "UTF-8"


class Request(_WebobRequest):  # type: ignore[misc]
    """A request, whose text is UTF-8."""

    def __init__(self, environ: dict[str, Any], charset: str = CHARSET, *args: Any, **kwargs: Any):
        super().__init__(environ, charset, *args, **kwargs)


class Response(_WebobResponse):  # type: ignore[misc]
    """A response, whose text is UTF-8."""

    def __init__(self, *args: Any, charset: str = CHARSET, **kwargs: Any):
        super().__init__(*args, charset=charset, **kwargs)


def route(
    name: str, path: str, methods: Iterable[str] | None = None, requirements: dict[str, str] | None = None
) -> Callable[[Any], Any]:
    """Has a controller's method answer the requests for a path."""

    def marked(method: Any) -> Any:
        method.routing_info = {"name": name, "path": path, "methods": methods, "requirements": requirements}
        return method

    return marked


def websocket(name: str, path: str) -> Callable[[Any], Any]:
    """Has a controller's method serve the WebSockets of a path: it is called with the WebSocket, which closes when it returns."""

    def marked(method: Any) -> Any:
        def serve(controller: ControllerBase, req: Any, **_parts: Any) -> Any:
            try:
                connection = WebSocket(req.environ)
            except WebSocketError as error:
                return webob.exc.HTTPBadRequest(str(error))
            connections = controller.parent.websocketmanager
            connections.add_connection(connection)
            try:
                method(controller, connection)
            finally:
                connections.delete_connection(connection)
                connection.close()
            # The server sends nothing more after this.
            raise ConnectionAbortedError

        return route(name, path)(serve)

    return marked


class ControllerBase:
    """The base class of controllers. One is made for each request."""

    #: Parts of a route that are not arguments of methods.
    special_vars = ["action", "controller"]

    def __init__(self, req: Any, link: Any, data: Any, **config: Any):
        self.req = req
        self.link = link
        self.data = data
        self.parent: Any = None
        for name, value in config.items():
            setattr(self, name, value)

    def __call__(self, req: Any) -> Any:
        before = getattr(self, "__before__", None)
        if before is not None:
            before()
        parts = dict(self.req.urlvars)
        action = parts.get("action", "index")
        for name in self.special_vars:
            parts.pop(name, None)
        return getattr(self, action)(req, **parts)


class WebSocketManager:
    """The WebSockets that are open."""

    def __init__(self) -> None:
        self._connections: list[WebSocket] = []

    def add_connection(self, ws: WebSocket) -> None:
        """Adds a WebSocket."""
        self._connections.append(ws)

    def delete_connection(self, ws: WebSocket) -> None:
        """Removes a WebSocket."""
        self._connections.remove(ws)

    def broadcast(self, msg: str | bytes) -> None:
        """Sends a message to all."""
        for connection in list(self._connections):
            connection.send(msg)


class WSGIApplication:
    """The controllers of all applications, by paths."""

    def __init__(self, **config: Any):
        self.config = config
        self.mapper = Mapper()
        #: What the controllers get as `data`, by the names of their classes. The name is Ryu's.
        self.registory: dict[str, Any] = {}
        self.websocketmanager = WebSocketManager()

    def register(self, controller: Any, data: Any = None) -> None:
        """Adds a class of controllers, whose methods `route` has marked."""
        for name, method in inspect.getmembers(controller, inspect.isroutine):
            info = getattr(method, "routing_info", None)
            if info is None:
                continue
            self.mapper.connect(
                info["name"],
                info["path"],
                controller=controller,
                action=name,
                requirements=info.get("requirements") or {},
                conditions={"method": list(info["methods"])} if info.get("methods") else {},
            )
        if data:
            self.registory[controller.__name__] = data

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        return webob.dec.wsgify(self._answer, RequestClass=Request)(environ, start_response)

    def _answer(self, req: Any) -> Any:
        parts = self.mapper.match(environ=req.environ)
        if not parts:
            return webob.exc.HTTPNotFound()
        req.urlvars = parts
        cls = parts["controller"]
        link = URLGenerator(self.mapper, req.environ)
        controller = cls(req, link, self.registory.get(cls.__name__), **self.config)
        controller.parent = self
        return controller(req)


class WSGIServer(Server):
    """The server of an application's controllers."""

    def __init__(self, application: Any, **_config: Any):
        try:
            super().__init__((CONF.wsapi_host, CONF.wsapi_port), application)
        except (OSError, OverflowError, ValueError) as error:
            raise LoadError(f"cannot start the HTTP server: {error}: expected another --wsapi-host or --wsapi-port") from None

    def __call__(self) -> None:
        self.serve_forever()


def start_service(app_mgr: Any) -> WSGIServer | None:
    """Returns the server of the manager's WSGIApplication; None without one."""
    for context in app_mgr.contexts.values():
        if isinstance(context, WSGIApplication):
            return WSGIServer(context)
    return None


# Calls by JSON-RPC 2.0, either way of a WebSocket.


def rpc_public(method: Any = None, name: str | None = None) -> Any:
    """Lets clients call a method, by another name if that is given."""
    if method is None or isinstance(method, str):
        return lambda marked: rpc_public(marked, method or name)
    method.rpc_name = name or method.__name__
    return method


class RPCError(Exception):
    """A client's error, as the answer to a call."""


class _Proxy:
    """The methods of the peer."""

    def __init__(self, call: Callable[[str, tuple[Any, ...], dict[str, Any]], Any], prefix: str):
        self._call = call
        self._prefix = prefix

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *args, **kwargs: self._call(self._prefix + name, args, kwargs)


class WebSocketRPCClient:
    """Calls methods of the client of a WebSocket. A task that serves it reads the answers."""

    def __init__(self, ws: WebSocket):
        self.ws = ws
        self._numbers = itertools.count(1)
        self._answers: dict[Any, hub.Queue] = {}

    def get_proxy(self, prefix: str = "", one_way: bool = False) -> _Proxy:
        """Returns an object whose methods are the client's; with one_way, they return at once, and without a result."""
        return _Proxy(self._notify if one_way else self._call, prefix)

    def serve_forever(self) -> None:
        """Reads answers until the WebSocket is closed."""
        while (message := self.ws.wait()) is not None:
            self._handle(message)
        for answer in self._answers.values():
            answer.put({"error": {"message": "the WebSocket is closed"}})

    def _handle(self, message: str | bytes) -> None:
        try:
            answer = json.loads(message)
            waiting = self._answers.pop(answer["id"])
        except (ValueError, TypeError, KeyError):
            LOG.warning("ignoring a message of a WebSocket: it is not the answer to a call")
            return
        waiting.put(answer)

    @staticmethod
    def _request(method: str, args: tuple[Any, ...], kwargs: dict[str, Any], **more: Any) -> str:
        if args and kwargs:
            raise ValueError(f"{method}: expected arguments by position or by name, not both")
        return json.dumps({"jsonrpc": "2.0", "method": method, "params": list(args) if args else kwargs, **more})

    def _notify(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.ws.send(self._request(method, args, kwargs))

    def _call(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        number = next(self._numbers)
        self._answers[number] = hub.Queue()
        self.ws.send(self._request(method, args, kwargs, id=number))
        answer = self._answers[number].get()
        if answer.get("error") is not None:
            raise RPCError(answer["error"].get("message", ""))
        return answer.get("result")


class WebSocketRPCServer:
    """Has the client of a WebSocket call the methods of an object that `rpc_public` has marked."""

    def __init__(self, ws: WebSocket, rpc_callback: Any):
        self.ws = ws
        methods = inspect.getmembers(rpc_callback, lambda member: hasattr(member, "rpc_name"))
        self._methods = {method.rpc_name: method for _, method in methods}

    def serve_forever(self) -> None:
        """Answers calls until the WebSocket is closed."""
        while (message := self.ws.wait()) is not None:
            answer = self._answer(message)
            if answer is not None:
                self.ws.send(json.dumps({"jsonrpc": "2.0", **answer}))

    def _answer(self, message: str | bytes) -> dict[str, Any] | None:
        """Calls a method; returns None for a call without a number, which is not answered."""
        try:
            call = json.loads(message)
        except ValueError:
            return _error(None, -32700, "the message is not JSON")
        if not isinstance(call, dict) or not isinstance(call.get("method"), str):
            return _error(None, -32600, "expected an object with a method")
        answer = self._result(call)
        return answer if "id" in call else None

    def _result(self, call: dict[str, Any]) -> dict[str, Any]:
        number, params = call.get("id"), call.get("params", [])
        method = self._methods.get(call["method"])
        if method is None:
            return _error(number, -32601, f"there is no method {call['method']}")
        if not isinstance(params, (list, dict)):
            return _error(number, -32602, "expected params that are a list or an object")
        try:
            result = method(**params) if isinstance(params, dict) else method(*params)
            # What cannot be written is the method's error, too.
            json.dumps(result)
        except Exception as error:
            LOG.exception("method %s raised an exception", call["method"])
            return _error(number, -32000, str(error))
        return {"id": number, "result": result}


def _error(number: Any, code: int, text: str) -> dict[str, Any]:
    return {"id": number, "error": {"code": code, "message": text}}
