"""HTTP interfaces of applications: requests, WebSockets, and calls by JSON-RPC."""

import http.client
import json
import socket
from pathlib import Path

import pytest
from test_manager import DEADLINE, Program, Switch, write
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, CloseConnection, Request, TextMessage

APP = Path(__file__).parent / "rest_13.py"
OPTIONS = ["--ofp-tcp-listen-port=0", "--ofp-listen-host=127.0.0.1", "--wsapi-host=127.0.0.1"]
TABLE = "/simpleswitch/mactable/0000000000000005"


class Web:
    """A client of the program's HTTP server."""

    def __init__(self, program):
        self.port = int(program.wait_for(r"wsgi starting up on http://127\.0\.0\.1:(\d+)")[1])

    def request(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)
        try:
            connection.request(method, path, body)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def open(self, path):
        return WebSocket(self.port, path)


class WebSocket:
    """The client's side of a WebSocket."""

    def __init__(self, port, path):
        self.protocol = WSConnection(ConnectionType.CLIENT)
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE)
        self.events = []
        self.send(Request(host="localhost", target=path))
        assert isinstance(self.next(), AcceptConnection)

    def send(self, event):
        self.socket.sendall(self.protocol.send(event))

    def next(self):
        while not self.events:
            self.protocol.receive_data(self.socket.recv(65536) or None)
            self.events += self.protocol.events()
        return self.events.pop(0)

    def ask(self, text):
        self.send(TextMessage(text))
        return self.next().data


@pytest.fixture
def program():
    with Program(*OPTIONS, "--wsapi-port=0", APP) as program:
        program.address = program.port()
        yield program


def test_a_table_is_read_and_changed(program):
    web = Web(program)
    assert web.request("GET", TABLE)[0] == 404
    switch = Switch(program.address)
    switch.packet_in(1, 2, 7)
    switch.receive(13)
    assert web.request("GET", TABLE) == (200, json.dumps({"02:00:00:00:00:01": 7}))
    assert web.request("PUT", TABLE, json.dumps({"mac": "02:00:00:00:00:03", "port": 9}))[0] == 201
    assert json.loads(web.request("GET", TABLE)[1])["02:00:00:00:00:03"] == 9
    for method, path in [("GET", "/simpleswitch/mactable/5"), ("DELETE", TABLE), ("GET", "/"), ("GET", "/events/more")]:
        assert web.request(method, path)[0] == 404
    switch.assert_served()


def test_an_error_of_a_method_is_its_own(program):
    web = Web(program)
    assert web.request("GET", "/broken")[0] == 500
    assert web.request("PUT", TABLE, "{")[0] == 500
    assert web.request("PUT", TABLE, json.dumps({"mac": "02:00:00:00:00:03", "port": 9}))[0] == 201
    program.wait_for("broken on purpose")


def test_a_websocket_gets_answers_and_broadcasts(program):
    web = Web(program)
    socket = web.open("/events")
    assert socket.ask("hello") == "echo hello"
    switch = Switch(program.address)
    switch.packet_in(1, 2, 7)
    assert socket.next().data == "packet-in of 5"
    assert socket.ask("again") == "echo again"
    socket.send(CloseConnection(code=1000))
    assert isinstance(socket.next(), CloseConnection)
    assert web.request("GET", "/events")[0] == 400
    # Nobody listens any more.
    switch.packet_in(1, 2, 7)
    switch.assert_served()


def test_a_message_that_is_too_long_closes_the_websocket(program):
    socket = Web(program).open("/events")
    socket.send(TextMessage("x" * ((1 << 20) + 1)))
    assert socket.next().code == 1009


def test_methods_are_called_by_json_rpc(program):
    socket = Web(program).open("/calls")

    def ask(call):
        return json.loads(socket.ask(json.dumps(call)))

    call = {"jsonrpc": "2.0", "id": 1, "method": "add", "params": [2, 3]}
    assert ask(call) == {"jsonrpc": "2.0", "id": 1, "result": 5}
    assert ask({**call, "params": {"first": "a", "second": "b"}})["result"] == "ab"
    for wrong, code in [
        ({**call, "method": "events"}, -32601),
        ({**call, "params": [1]}, -32000),
        ({**call, "params": 7}, -32602),
        ({"id": 1}, -32600),
        ([], -32600),
    ]:
        assert ask(wrong)["error"]["code"] == code
    assert json.loads(socket.ask("{"))["error"]["code"] == -32700
    # A notification has no answer.
    socket.send(TextMessage(json.dumps({"method": "add", "params": [1, 2]})))
    assert ask({**call, "id": 2})["id"] == 2


def test_clients_that_are_silent_or_wrong_cost_others_nothing(program):
    web = Web(program)
    silent = [socket.create_connection(("127.0.0.1", web.port)) for _ in range(50)]
    for index, client in enumerate(silent):
        client.sendall(b"GET / HT" if index % 2 else b"\0\xff\r\n\r\n")
    assert web.request("PUT", TABLE, json.dumps({"mac": "02:00:00:00:00:03", "port": 9}))[0] == 201
    Switch(program.address).assert_served()


@pytest.mark.parametrize("option", ["--wsapi-port=x", "--wsapi-port=70000", "--wsapi-host=192.0.2.1"])
def test_a_server_that_cannot_start_ends_the_program(option):
    options = ["--wsapi-port=0", option] if "host" in option else [option]
    with Program(*OPTIONS, *options, APP) as program:
        status, lines = program.end()
    assert status == 1
    assert "cannot start the HTTP server" in lines and "expected" in lines, lines
    assert "Traceback" not in lines


def test_an_application_without_an_interface_starts_no_server(tmp_path):
    app = write(tmp_path, "from ryu.controller import dpset\nclass App(dpset.DPSet):\n    pass\n")
    with Program(*OPTIONS, "--wsapi-port=0", app) as program:
        program.port()
        assert not any("wsgi" in line for line in program.lines)


def test_the_network_is_read_over_http_and_followed_over_a_websocket():
    apps = ["ryu.app.rest_topology", "ryu.app.ws_topology"]
    with Program(*OPTIONS, "--wsapi-port=0", "--observe-links", *apps) as program:
        address = program.port()
        web = Web(program)
        client = web.open("/v1.0/topology/ws")
        assert web.request("GET", "/v1.0/topology/switches") == (200, "[]")
        switch = Switch(address)
        call = json.loads(client.next().data)
        told = {"dpid": "0000000000000005", "ports": []}
        assert (call["method"], call["params"]) == ("event_switch_enter", [told])
        client.send(TextMessage("no answer"))
        client.send(TextMessage(json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": ""})))
        assert json.loads(web.request("GET", "/v1.0/topology/switches/0000000000000005")[1]) == [told]
        for path in ["switches/0000000000000006", "links", "links/0000000000000005", "hosts", "hosts/0000000000000005"]:
            assert web.request("GET", f"/v1.0/topology/{path}") == (200, "[]")
        assert web.request("GET", "/v1.0/topology/switches/5")[0] == 404
        switch.socket.close()
        assert json.loads(client.next().data)["method"] == "event_switch_leave"
