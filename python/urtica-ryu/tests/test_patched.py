"""The patched standard library, in a process of its own."""

import subprocess
import sys

import pytest

PRELUDE = """
import faulthandler
faulthandler.dump_traceback_later(60, exit=True)
from urtica_ryu import hub
hub.patch()
hub.patch()
import concurrent.futures, http.server, os, queue, select, socket, threading, time, urllib.request

def run(main):
    hub.joinall([hub.spawn(main)])
"""

PROGRAMS = {
    "sleeping threads take turns": """
def work(name, log):
    for _ in range(3):
        log.append(name)
        time.sleep(0)

def main():
    log = []
    threads = [threading.Thread(target=work, args=(name, log)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
        assert not thread.is_alive()
    print("".join(log))
run(main)
""",
    "a thread that is killed in a lock": """
def main():
    lock = threading.Lock()
    lock.acquire()
    task = hub.spawn(lock.acquire)
    hub.sleep(0)
    hub.kill(task)
    print(task.dead, lock.acquire(timeout=0.01))
run(main)
""",
    "conditions, events and queues": """
def main():
    items, answers, done = queue.Queue(2), queue.SimpleQueue(), threading.Event()
    def read():
        while (item := items.get()) is not None:
            answers.put(item)
        done.set()
    thread = threading.Thread(target=read, name="reader")
    thread.start()
    for item in [1, 2, 3, 4, None]:
        items.put(item)
    done.wait()
    print([answers.get() for _ in range(4)], threading.Event().wait(0.01))
run(main)
""",
    "a lock that is taken again, and a timer": """
def main():
    lock, called = threading.RLock(), threading.Event()
    with lock, lock:
        threading.Timer(0.01, called.set).start()
        called.wait()
    print(threading.current_thread() is not None)
    names = []
    thread = threading.Thread(target=lambda: names.append(threading.current_thread().name), name="mine")
    thread.start(); thread.join()
    print(names)
run(main)
""",
    "a socket that waits lets others run": """
def main():
    server = hub.listen(("127.0.0.1", 0))
    log = []
    def serve():
        connection, _ = server.accept()
        while data := connection.recv(100):
            connection.sendall(data.upper())
    hub.spawn(serve)
    client = socket.create_connection(server.getsockname())
    client.sendall(b"hello")
    print(client.recv(100))
    client.settimeout(0.01)
    try:
        client.recv(1)
    except socket.timeout:
        print("timed out")
    with hub.Timeout(0.01, False):
        client.settimeout(None)
        client.recv(1)
    print("exactly")
run(main)
""",
    "a server and its client in one program": """
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"served")
    def log_message(self, *arguments):
        pass

def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.spawn(server.serve_forever)
    print(urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/").read())
run(main)
""",
    "select and a pool": """
def main():
    reader, writer = os.pipe()
    hub.spawn_after(0.02, os.write, writer, b"x")
    print(select.select([reader], [], []) == ([reader], [], []))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        print(list(pool.map(lambda number: number * 2, range(5))))
run(main)
""",
}

OUTPUTS = {
    "sleeping threads take turns": "abcabcabc",
    "a thread that is killed in a lock": "True False",
    "conditions, events and queues": "[1, 2, 3, 4] False",
    "a lock that is taken again, and a timer": "True\n['mine']",
    "a socket that waits lets others run": "b'HELLO'\ntimed out\nexactly",
    "a server and its client in one program": "b'served'",
    "select and a pool": "True\n[0, 2, 4, 6, 8]",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_wait_without_holding_the_baton(name):
    program = [sys.executable, "-c", PRELUDE + PROGRAMS[name] + "\nos._exit(0) if not print(end='', flush=True) else 1"]
    result = subprocess.run(program, capture_output=True, text=True, timeout=120)
    assert (result.stdout.strip(), result.returncode) == (OUTPUTS[name], 0), result.stderr
