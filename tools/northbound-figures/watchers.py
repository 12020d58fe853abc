"""Clients of the HTTP interface that run during a measurement: one scrapes metrics, one receives events."""

import base64
import contextlib
import os
import socket
import threading
import time
import urllib.error
import urllib.request

from bench import Bench, MeasureError

SCRAPE_INTERVAL_S = 1
TIMEOUT_S = 60
DEADLINE_S = 60


class WatchedBench(Bench):
    """A bench whose servers with an HTTP interface are scraped each second, and have a WebSocket client."""

    def __init__(self, bench, http):
        super().__init__(bench.settings, bench.folder)
        self.runs, self.random, self.place = bench.runs, bench.random, bench.place
        self.repeats_left, self.http = bench.repeats_left, http

    @contextlib.contextmanager
    def server(self, server, wrapper=()):
        with super().server(server, wrapper) as started:
            if not any(part.startswith("--northbound") for part in server.command):
                yield started
                return
            wait_until_answered(self.http, "/stats/switches")
            with watched(self.http, self.settings.load_core):
                yield started


def get(http, path, timeout=TIMEOUT_S):
    """Returns the whole body of a response."""
    host, port = http
    with urllib.request.urlopen(f"http://{host}:{port}{path}", timeout=timeout) as response:
        return response.read()


def wait_until_answered(http, path):
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            return get(http, path)
        except OSError as error:
            if time.monotonic() > deadline:
                raise MeasureError(f"the HTTP interface does not answer {path}: {error}") from error
            time.sleep(0.05)


@contextlib.contextmanager
def watched(http, core):
    """Runs both clients on this core during the block. Raises an error if either was not served."""
    stop, problems = threading.Event(), []
    websocket = open_websocket(http)
    clients = [
        threading.Thread(target=on_core, args=(core, problems, scrape, http, stop)),
        threading.Thread(target=on_core, args=(core, problems, drain, websocket, stop)),
    ]
    for client in clients:
        client.start()
    try:
        yield
    finally:
        stop.set()
        websocket.shutdown(socket.SHUT_RDWR)
        for client in clients:
            client.join()
        websocket.close()
    if problems:
        raise MeasureError(f"a client of the HTTP interface was not served: {problems[0]}")


def on_core(core, problems, work, *arguments):
    os.sched_setaffinity(0, {core})
    try:
        work(*arguments)
    except (OSError, MeasureError) as error:
        problems.append(str(error))


def scrape(http, stop):
    """Scrapes at once, and then each second."""
    while True:
        if b"urtica_switches" not in get(http, "/metrics"):
            raise MeasureError("there are no metrics")
        if stop.wait(SCRAPE_INTERVAL_S):
            return


def open_websocket(http):
    """Connects as a client of events, like Ryu's pages (RFC 6455 section 4.1)."""
    client = socket.create_connection(http, TIMEOUT_S)
    key = base64.b64encode(os.urandom(16)).decode()
    client.sendall(
        f"GET /v1.0/topology/ws HTTP/1.1\r\nHost: {http[0]}:{http[1]}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    said = client.recv(4096)
    if b" 101 " not in said.split(b"\r\n")[0]:
        raise MeasureError(f"no WebSocket: {said[:60]!r}")
    client.settimeout(None)
    return client


def drain(client, stop):
    """Reads until the socket is shut down."""
    while client.recv(65536):
        pass
    if not stop.is_set():
        raise MeasureError("the WebSocket was closed")
