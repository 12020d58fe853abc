"""What is said of rows, from stand-ins for what is measured: python3 -m unittest discover tools/northbound-figures"""

import socket
import sys
import threading
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

sys.path.append(str(Path(__file__).resolve().parent.parent / "figures"))

import http_rows
import tls_rows
import watchers
from bench import L2, MeasureError

SUMMARY = """\
=================================== FAILURES ===================================
Test cases:
  10957 generated, 3 found 2 unique failures, 10954 passed

Failures:
  ❌ Server error: 2
  ❌ Network Error: 1
"""

CHANGES = """\
 0 of 25 entries differ on 200 switches:      0 flow mods, 0 that did not differ, 0 packets lost; 1.2s
 5 of 25 entries differ on 200 switches:   2003 flow mods, 3 that did not differ, 1 packets lost; 1.3s
"""

PROFILE = """\
12,345 (100.0%)  PROGRAM TOTALS
6,000 (48.60%)  ???:ring_core_aes_gcm [/usr/bin/urtica]
2,000 (16.20%)  session.rs:urtica_socket::tls::session::read [/usr/bin/urtica]
"""


class WhatToolsTell(unittest.TestCase):
    def test_schemathesis_says_how_many_requests_had_which_fault(self):
        self.assertEqual(http_rows.findings_in(SUMMARY), (10957, 2, 1))
        self.assertEqual(http_rows.findings_in("  957 generated, 957 passed\n"), (957, 0, 0))
        self.assertIsNone(http_rows.findings_in("Schema not found"))

    def test_each_change_has_flow_mods_that_did_not_differ_and_lost_packets(self):
        self.assertEqual(http_rows.changes_in(CHANGES), [(0, 0), (3, 1)])
        self.assertEqual(http_rows.changes_in("running 0 tests"), [])

    def test_a_profile_names_functions_with_their_shares(self):
        expected = ["`ring_core_aes_gcm` 48.60 %", "`urtica_socket::tls::session::read` 16.20 %"]
        self.assertEqual(tls_rows.functions_in(PROFILE), expected)


class Changes(unittest.TestCase):
    def line(self, told):
        done = SimpleNamespace(stdout=told, stderr="no such bench", returncode=0)
        bench = SimpleNamespace(settings=SimpleNamespace(quick=False))
        with mock.patch.object(http_rows.subprocess, "run", return_value=done):
            return http_rows.change_of_a_program(bench)

    def test_all_changes_count(self):
        flow_mods, lost = self.line(CHANGES)
        self.assertEqual((flow_mods.figure, flow_mods.reached), (3, "no"))
        self.assertEqual((lost.figure, lost.reached), (1, "no"))

    def test_nothing_told_is_nothing_measured(self):
        with self.assertRaisesRegex(MeasureError, "no such bench"):
            self.line("")


class LoadsOverTls(unittest.TestCase):
    def setUp(self):
        settings = SimpleNamespace(seed=1, quick=True, load_core=1)
        plain = tls_rows.Bench(settings, Path("/nowhere"))
        self.keys = tls_rows.Keys(Path("/nowhere/pki"))
        self.bench = tls_rows.TlsBench(plain, self.keys)

    def command(self, server):
        started = SimpleNamespace(command=server.command, port=7, pid=8)
        return self.bench.load_command(started, ("-t",))

    def test_a_server_with_keys_has_a_load_with_keys(self):
        server = tls_rows.tls_server(self.keys)
        self.assertIn("pssl:{port}:{host}", server.command)
        command = self.command(server)
        self.assertIn(f"ssl:{self.bench.place.host}:7", command)
        self.assertEqual(command[command.index("--ca-cert") + 1], "/nowhere/pki/controllerca/cacert.pem")
        self.assertNotIn("-p", command)

    def test_another_has_a_plain_one(self):
        self.assertNotIn("--ca-cert", self.command(L2))


class Clients(unittest.TestCase):
    def served(self, answer):
        """Returns the result of a WebSocket client that receives this answer from a server."""
        listener = socket.create_server(("127.0.0.1", 0))

        def serve():
            client, _ = listener.accept()
            with client:
                client.recv(4096)
                client.sendall(answer)

        server = threading.Thread(target=serve)
        server.start()
        try:
            return watchers.open_websocket(listener.getsockname())
        finally:
            server.join()
            listener.close()

    def test_a_refusal_is_told(self):
        with self.assertRaisesRegex(MeasureError, "no WebSocket"):
            self.served(b"HTTP/1.1 401 Unauthorized\r\n\r\n")

    def test_a_websocket_that_is_closed_early_is_a_fault(self):
        client = self.served(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
        with client, self.assertRaisesRegex(MeasureError, "was closed"):
            watchers.drain(client, threading.Event())


if __name__ == "__main__":
    unittest.main()
