"""The standard library's calls that wait, on the baton: `patch` puts them into the standard library's modules.

What a module took from them before, with `from threading import Lock`, stays as it is. Not patched: `_thread`, `subprocess`,
`ssl`, `multiprocessing`, `asyncio`; their calls stop the program while they wait.
"""

from __future__ import annotations

import contextlib
import queue
import select
import selectors
import socket
import threading
import time
from _thread import get_ident
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from urtica_ryu import hub
from urtica_ryu.baton import Task

_Socket = socket.socket
_Thread = threading.Thread
_current_thread = threading.current_thread
_select = select.select
_sleep = time.sleep


def sleep(seconds: float) -> None:
    """Like time.sleep, while other tasks run."""
    if seconds < 0:
        raise ValueError("sleep length must be non-negative")
    if hub.baton().current() is None:
        _sleep(seconds)
    else:
        hub.sleep(seconds)


class Lock:
    """Like threading.Lock."""

    def __init__(self) -> None:
        self._semaphore = hub.Semaphore(1)

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Takes the lock."""
        return self._semaphore.acquire(blocking, None if timeout < 0 else timeout)

    def release(self) -> None:
        """Releases the lock."""
        if not self.locked():
            raise RuntimeError("release unlocked lock")
        self._semaphore.release()

    def locked(self) -> bool:
        """Returns whether it is taken."""
        return self._semaphore.locked()

    def _at_fork_reinit(self) -> None:
        self._semaphore = hub.Semaphore(1)

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_exception: object) -> None:
        self.release()


class RLock:
    """Like threading.RLock."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._owner: int | None = None
        self._depth = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Takes the lock, once more if the caller has it."""
        if self._owner != get_ident():
            if not self._lock.acquire(blocking, timeout):
                return False
            self._owner = get_ident()
        self._depth += 1
        return True

    def release(self) -> None:
        """Releases the lock once."""
        if self._owner != get_ident():
            raise RuntimeError("cannot release un-acquired lock")
        self._depth -= 1
        if not self._depth:
            self._owner = None
            self._lock.release()

    # For conditions.

    def _is_owned(self) -> bool:
        return self._owner == get_ident()

    def _release_save(self) -> int:
        depth, self._depth, self._owner = self._depth, 0, None
        self._lock.release()
        return depth

    def _acquire_restore(self, depth: int) -> None:
        self._lock.acquire()
        self._depth, self._owner = depth, get_ident()

    def _at_fork_reinit(self) -> None:
        self.__init__()  # type: ignore[misc]

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_exception: object) -> None:
        self.release()


class _Waiter:
    def __init__(self) -> None:
        self.is_notified = False


class Condition:
    """Like threading.Condition."""

    def __init__(self, lock: Any = None):
        self._lock: Any = RLock() if lock is None else lock
        self.acquire = self._lock.acquire
        self.release = self._lock.release
        self._waiters: deque[tuple[_Waiter, hub.Event]] = deque()

    def __enter__(self) -> Any:
        return self._lock.__enter__()

    def __exit__(self, *exception: object) -> None:
        self._lock.__exit__(*exception)

    def _save(self) -> Any:
        if hasattr(self._lock, "_release_save"):
            return self._lock._release_save()
        return self._lock.release()

    def _restore(self, state: Any) -> None:
        if hasattr(self._lock, "_acquire_restore"):
            self._lock._acquire_restore(state)
        else:
            self._lock.acquire()

    def _check_owned(self) -> None:
        if hasattr(self._lock, "_is_owned"):
            is_owned = self._lock._is_owned()
        else:
            is_owned = self._lock.locked()
        if not is_owned:
            raise RuntimeError("cannot use an un-acquired lock")

    def wait(self, timeout: float | None = None) -> bool:
        """Waits for a notification."""
        self._check_owned()
        waiter = (_Waiter(), hub.Event())
        self._waiters.append(waiter)
        state = self._save()
        try:
            waiter[1].wait(timeout)
        finally:
            self._restore(state)
            if not waiter[0].is_notified:
                self._waiters.remove(waiter)
        return waiter[0].is_notified

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        """Waits until a function returns a true value."""
        end = None if timeout is None else hub.baton().now() + timeout
        result = predicate()
        while not result:
            left = None if end is None else end - hub.baton().now()
            if left is not None and left <= 0:
                break
            self.wait(left)
            result = predicate()
        return result

    def notify(self, n: int = 1) -> None:
        """Wakes the first ones that wait."""
        self._check_owned()
        for _ in range(min(n, len(self._waiters))):
            waiter, event = self._waiters.popleft()
            waiter.is_notified = True
            event.set()

    def notify_all(self) -> None:
        """Wakes all that wait."""
        self.notify(len(self._waiters))

    notifyAll = notify_all


class Thread(_Thread):
    """Like threading.Thread: a task, which runs while it holds the baton."""

    def __init__(
        self,
        group: None = None,
        target: Callable[..., object] | None = None,
        name: str | None = None,
        args: Iterable[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        daemon: bool | None = None,
    ):
        # By name: the standard library calls this for threads that the system started, too, which are of its own class.
        _Thread.__init__(self, group, target, name, args, kwargs, daemon=daemon)
        self._task: Task | None = None

    def start(self) -> None:
        """Makes the task ready."""
        if self._task is not None:
            raise RuntimeError("threads can only be started once")
        self._task = hub.baton().spawn(lambda: self.run(), name=self.name)
        self._task.thread = self

    def join(self, timeout: float | None = None) -> None:
        """Waits for the end."""
        if self._task is None:
            raise RuntimeError("cannot join thread before it is started")
        if self._task is hub.baton().current():
            raise RuntimeError("cannot join current thread")
        hub.baton().join(self._task, timeout)

    def is_alive(self) -> bool:
        """Returns whether it has been started and has not ended."""
        return self._task is not None and not self._task.is_done

    @property
    def ident(self) -> int | None:
        """The thread's number, once it has run."""
        return self._task.ident if self._task else None


class Timer(Thread):
    """Like threading.Timer."""

    def __init__(
        self, interval: float, function: Callable[..., object], args: Iterable[Any] | None = None, kwargs: Any = None
    ):
        super().__init__()
        self.interval = interval
        self.function = function
        self.args = args or ()
        self.kwargs = kwargs or {}
        self.finished = hub.Event()

    def cancel(self) -> None:
        """Prevents the call."""
        self.finished.set()

    def run(self) -> None:
        """Waits, and calls."""
        if not self.finished.wait(self.interval):
            self.function(*self.args, **self.kwargs)
        self.finished.set()


def current_thread() -> threading.Thread:
    """Like threading.current_thread."""
    task = hub.baton().current()
    return task.thread if task and task.thread else _current_thread()


class Socket(_Socket):
    """Like socket.socket, while other tasks run."""

    def _until_ready(self, is_write: bool, call: Callable[[], Any]) -> Any:
        """Calls a function of the socket, again when the socket is ready."""
        baton, timeout = hub.baton(), self.gettimeout()
        if baton.current() is None or timeout == 0:
            return call()
        wait = baton.wait_writable if is_write else baton.wait_readable
        end = None if timeout is None else baton.now() + timeout
        while True:
            try:
                return self._without_waiting(call, timeout)
            except (BlockingIOError, InterruptedError):
                left = None if end is None else max(0.0, end - baton.now())
                if not wait(self.fileno(), left):
                    raise TimeoutError("timed out") from None

    def _without_waiting(self, call: Callable[[], Any], timeout: float | None) -> Any:
        self.settimeout(0)
        try:
            return call()
        finally:
            self.settimeout(timeout)

    def accept(self) -> tuple[socket.socket, Any]:
        """Waits for a connection."""

        def accept() -> tuple[socket.socket, Any]:
            file, address = self._accept()  # type: ignore[attr-defined]
            return Socket(self.family, self.type, self.proto, file), address

        made, address = self._until_ready(False, accept)
        made.settimeout(socket.getdefaulttimeout())
        return made, address

    def connect(self, address: Any) -> None:
        """Connects."""
        timeout = self.gettimeout()
        if hub.baton().current() is None or timeout == 0:
            return super().connect(address)
        try:
            self._without_waiting(lambda: _Socket.connect(self, address), timeout)
        except BlockingIOError:
            if not hub.baton().wait_writable(self.fileno(), timeout):
                raise TimeoutError("timed out") from None
            if error := self.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                raise OSError(error, f"cannot connect to {address}") from None

    def recv(self, *arguments: Any) -> bytes:
        """Receives."""
        return bytes(self._until_ready(False, lambda: _Socket.recv(self, *arguments)))

    def recv_into(self, *arguments: Any) -> int:
        """Receives into a buffer."""
        return int(self._until_ready(False, lambda: _Socket.recv_into(self, *arguments)))

    def recvfrom(self, *arguments: Any) -> Any:
        """Receives, with the sender's address."""
        return self._until_ready(False, lambda: _Socket.recvfrom(self, *arguments))

    def send(self, *arguments: Any) -> int:
        """Sends the first part."""
        return int(self._until_ready(True, lambda: _Socket.send(self, *arguments)))

    def sendall(self, data: Any, *flags: int) -> None:
        """Sends all."""
        rest = memoryview(data).cast("B")
        while rest:
            rest = rest[self.send(rest, *flags) :]

    def sendto(self, *arguments: Any) -> int:
        """Sends to an address."""
        return int(self._until_ready(True, lambda: _Socket.sendto(self, *arguments)))


# Seconds between two looks at files, for calls that wait for several.
_LOOK_INTERVAL = 0.01


def select_select(read: Any, write: Any, failed: Any, timeout: float | None = None) -> tuple[list[Any], ...]:
    """Like select.select, while other tasks run."""
    baton = hub.baton()
    if baton.current() is None:
        return _select(read, write, failed, timeout)
    end = None if timeout is None else baton.now() + timeout
    while True:
        found = _select(read, write, failed, 0)
        left = _LOOK_INTERVAL if end is None else end - baton.now()
        if any(found) or left <= 0:
            return found
        hub.sleep(min(left, _LOOK_INTERVAL))


class _Selector(selectors.SelectSelector):
    """The selector of the standard library's servers, on select_select."""

    def _select(self, read: Any, write: Any, _failed: Any, timeout: float | None = None) -> tuple[list[Any], ...]:
        found_read, found_write, _ = select_select(read, write, [], timeout)
        return found_read, found_write, []


#: What time.time returns when the time of a simulated network is 0: a moment in 2023.
SIMULATED_EPOCH_S = 1_700_000_000


def _clock(real: Callable[[], Any], epoch_s: int, is_ns: bool) -> Callable[[], Any]:
    """Returns a function like one of the module time, which reads the simulated clock in tasks."""

    def read() -> Any:
        baton = hub.baton()
        if baton.clock is None or baton.current() is None:
            return real()
        return epoch_s * 1_000_000_000 + round(baton.now() * 1e9) if is_ns else epoch_s + baton.now()

    return read


_monotonic = _clock(time.monotonic, 0, False)

#: What reads the time, in simulated networks.
_CLOCKS: list[tuple[Any, dict[str, Any]]] = [
    (
        time,
        {
            "time": _clock(time.time, SIMULATED_EPOCH_S, False),
            "time_ns": _clock(time.time_ns, SIMULATED_EPOCH_S, True),
            "monotonic": _monotonic,
            "monotonic_ns": _clock(time.monotonic_ns, 0, True),
            "perf_counter": _clock(time.perf_counter, 0, False),
            "perf_counter_ns": _clock(time.perf_counter_ns, 0, True),
        },
    ),
    # By these names they have time.monotonic, for timeouts.
    (queue, {"time": _monotonic}),
    (threading, {"_time": _monotonic}),
]

_CALLS: list[tuple[Any, dict[str, Any]]] = [
    (time, {"sleep": sleep}),
    (
        threading,
        {
            "Lock": Lock,
            "RLock": RLock,
            "Condition": Condition,
            "Thread": Thread,
            "Timer": Timer,
            "current_thread": current_thread,
        },
    ),
    (queue, {"SimpleQueue": queue._PySimpleQueue}),  # type: ignore[attr-defined]
    (select, {"select": select_select}),
    (
        selectors,
        dict.fromkeys(["DefaultSelector", "SelectSelector", "PollSelector", "EpollSelector"], _Selector),
    ),
    (socket, {"socket": Socket, "SocketType": Socket}),
]


def _put(names: Iterable[tuple[Any, dict[str, Any]]]) -> None:
    for module, values in names:
        for name, value in values.items():
            setattr(module, name, value)


def patch() -> None:
    """Puts the calls that wait into the standard library's modules. A second call does nothing."""
    _put(_CALLS)


@contextlib.contextmanager
def simulated() -> Iterator[None]:
    """Patches the standard library, with its clocks, for the time of a `with` statement."""
    names = _CALLS + _CLOCKS
    before = [(module, {name: getattr(module, name) for name in values}) for module, values in names]
    _put(names)
    try:
        yield
    finally:
        _put(before)
