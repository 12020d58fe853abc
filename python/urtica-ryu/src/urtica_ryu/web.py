"""An HTTP server for WSGI applications and WebSockets, each connection in a task of its own."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Callable
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler

from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Ping, Request, TextMessage
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from urtica_ryu import hub

LOG = logging.getLogger("ryu.lib.hub")

#: The connections that are served at a time; others wait.
MAX_CONNECTIONS = 256

#: The seconds for which a client may be silent within a request.
TIMEOUT_S = 60

#: The maximum size of a message of a WebSocket, in bytes.
MAX_MESSAGE_SIZE = 1 << 20

#: The key of the environment that has the connection, for WebSockets.
CONNECTION = "urtica.connection"

READ_SIZE = 65536


class Server:
    """Serves a WSGI application until its task is killed."""

    def __init__(self, listen_info: tuple[str, int], application: Callable[..., Any]):
        host, port = listen_info
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.application = application
        self.socket = hub.listen((host, port), family)
        self.host, self.port = self.socket.getsockname()[:2]
        self._places = hub.Semaphore(MAX_CONNECTIONS)
        self.base_environ = {
            "SERVER_NAME": self.host,
            "SERVER_PORT": str(self.port),
            "GATEWAY_INTERFACE": "CGI/1.1",
            "REMOTE_HOST": "",
            "CONTENT_LENGTH": "",
            "SCRIPT_NAME": "",
        }

    def serve_forever(self) -> None:
        """Accepts connections, and serves each in a task."""
        LOG.info("(%d) wsgi starting up on http://%s:%d", os.getpid(), self.host, self.port)
        try:
            while True:
                self._places.acquire()
                connection, address = self.socket.accept()
                hub.spawn(self._serve, connection, address)
        finally:
            self.socket.close()

    def _serve(self, connection: socket.socket, address: Any) -> None:
        connection.settimeout(TIMEOUT_S)
        try:
            _Connection(connection, address, self)  # type: ignore[arg-type]
        except (OSError, ValueError) as error:
            LOG.debug("a client of the HTTP server at %s failed: %s", address, error)
        finally:
            connection.close()
            self._places.release()

    def get_app(self) -> Callable[..., Any]:
        """Returns the application."""
        return self.application


class _Connection(WSGIRequestHandler):
    """Serves one request."""

    def get_environ(self) -> dict[str, Any]:
        environ = super().get_environ()
        environ[CONNECTION] = self
        return environ

    def get_stderr(self) -> Any:
        return sys.stderr

    # The name of a client would be asked for of a name server.
    def address_string(self) -> str:
        return str(self.client_address[0])

    def log_message(self, format: str, *args: Any) -> None:
        LOG.info("%s - - [%s] %s", self.address_string(), self.log_date_time_string(), format % args)


class WebSocketError(ValueError):
    """A request that does not begin a WebSocket; the text says why."""


class WebSocket:
    """A connection that messages pass both ways."""

    def __init__(self, environ: dict[str, Any]):
        """Accepts the request for a WebSocket that a WSGI application has got."""
        self.environ = environ
        self.path = str(environ.get("PATH_INFO", ""))
        self.origin = environ.get("HTTP_ORIGIN")
        self._connection: _Connection = environ[CONNECTION]
        self._protocol = WSConnection(ConnectionType.SERVER)
        self._received: list[str | bytes] = []
        self._parts: list[Any] = []
        self._size = 0
        self._is_closed = False
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in self._connection.headers.items()]
        try:
            self._protocol.initiate_upgrade_connection(headers, self.path)
            self._handle_events()
        except RemoteProtocolError as error:
            raise WebSocketError(f"this is not a request for a WebSocket: {error}") from None
        # A client that listens may be silent for long.
        self._connection.connection.settimeout(None)

    def send(self, message: str | bytes) -> None:
        """Sends a message; nothing once the WebSocket is closed."""
        if self._is_closed:
            return
        event = TextMessage(message) if isinstance(message, str) else BytesMessage(message)
        self._write(self._protocol.send(event))

    def wait(self) -> str | bytes | None:
        """Waits for the next message, and returns it; None once the WebSocket is closed."""
        while not self._received and not self._is_closed:
            try:
                data = self._connection.rfile.read1(READ_SIZE)
                self._protocol.receive_data(data or None)
                self._handle_events()
            except (OSError, RemoteProtocolError):
                self._is_closed = True
        return self._received.pop(0) if self._received else None

    def close(self) -> None:
        """Closes the WebSocket."""
        if not self._is_closed:
            self._is_closed = True
            self._write(self._protocol.send(CloseConnection(code=1000)))

    def _handle_events(self) -> None:
        for event in self._protocol.events():
            if isinstance(event, Request):
                self._write(self._protocol.send(AcceptConnection()))
            elif isinstance(event, (TextMessage, BytesMessage)):
                self._add(event)
            elif isinstance(event, Ping):
                self._write(self._protocol.send(event.response()))
            elif isinstance(event, CloseConnection):
                self._is_closed = True
                if self._protocol.state.name == "REMOTE_CLOSING":
                    self._write(self._protocol.send(event.response()))

    def _add(self, event: TextMessage | BytesMessage) -> None:
        """Adds a part of a message."""
        self._size += len(event.data)
        if self._size > MAX_MESSAGE_SIZE:
            self._is_closed = True
            self._write(self._protocol.send(CloseConnection(code=1009, reason="expected at most 1 MiB")))
            return
        self._parts.append(event.data)
        if event.message_finished:
            empty = "" if isinstance(event, TextMessage) else b""
            self._received.append(empty.join(self._parts))
            self._parts, self._size = [], 0

    def _write(self, data: bytes) -> None:
        try:
            self._connection.connection.sendall(data)
        except (OSError, LocalProtocolError):
            self._is_closed = True
