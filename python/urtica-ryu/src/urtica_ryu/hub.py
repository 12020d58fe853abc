"""Tasks, and what they wait for: Ryu's `ryu.lib.hub`, on the baton."""

from __future__ import annotations

import queue
import socket
from collections import deque
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

from urtica_ryu.baton import Baton, Task, TaskExit, Timer, WaitList

__all__ = [
    "BoundedSemaphore",
    "Event",
    "HubThread",
    "Queue",
    "QueueEmpty",
    "QueueFull",
    "Semaphore",
    "StreamServer",
    "TaskExit",
    "Timeout",
    "baton",
    "connect",
    "getcurrent",
    "joinall",
    "kill",
    "listen",
    "patch",
    "sleep",
    "spawn",
    "spawn_after",
    "use",
]

HUB_TYPE = "urtica"
QueueEmpty = queue.Empty
QueueFull = queue.Full

_baton = Baton()


def baton() -> Baton:
    """Returns the baton of the program."""
    return _baton


def use(new: Baton) -> None:
    """Sets the baton of tasks, events, queues and semaphores that are made from now on."""
    global _baton
    _baton = new


def patch(**_options: Any) -> None:
    """Makes the standard library's calls that wait hand the baton on."""
    from urtica_ryu import patched

    patched.patch()


class HubThread:
    """A task of the program."""

    def __init__(self, baton: Baton, task: Task):
        self._baton = baton
        self._task = task

    @property
    def dead(self) -> bool:
        """Whether it has ended."""
        return self._task.is_done

    def wait(self) -> None:
        """Waits for its end."""
        self._baton.join(self._task)

    def kill(self) -> None:
        """Raises TaskExit in it, and waits until it has run."""
        self._baton.kill(self._task)

    def __bool__(self) -> bool:
        return not self.dead

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HubThread) and self._task is other._task

    def __hash__(self) -> int:
        return hash(self._task)

    def __repr__(self) -> str:
        return repr(self._task)


def getcurrent() -> HubThread | None:
    """Returns the calling task; None outside of tasks."""
    task = _baton.current()
    return HubThread(_baton, task) if task else None


def _without_hub_keyword(keywords: dict[str, Any]) -> dict[str, Any]:
    # Ryu's spawn logs exceptions unless this is given; here they are always logged.
    keywords.pop("raise_error", None)
    return keywords


def spawn(function: Callable[..., object], *arguments: Any, **keywords: Any) -> HubThread:
    """Starts a task that calls a function."""
    return HubThread(_baton, _baton.spawn(function, *arguments, **_without_hub_keyword(keywords)))


def spawn_after(seconds: float, function: Callable[..., object], *arguments: Any, **keywords: Any) -> HubThread:
    """Starts a task that calls a function after a time."""
    keywords = _without_hub_keyword(keywords)

    def later() -> None:
        sleep(seconds)
        function(*arguments, **keywords)

    return HubThread(_baton, _baton.spawn(later, name=getattr(function, "__name__", None)))


def kill(thread: HubThread) -> None:
    """Raises TaskExit in a task, and waits until it has run."""
    thread.kill()


def joinall(threads: Iterable[HubThread]) -> None:
    """Waits for the end of all these tasks."""
    for thread in threads:
        thread.wait()


def sleep(seconds: float = 0) -> None:
    """Lets other tasks run for this time."""
    _baton.sleep(seconds)


class _Deadline:
    """The end of a wait that may take several turns."""

    def __init__(self, baton: Baton, timeout: float | None):
        self._baton = baton
        self._at = None if timeout is None else baton.now() + timeout

    def left(self) -> float | None:
        """Returns the remaining seconds; None if there is no end."""
        return None if self._at is None else max(0.0, self._at - self._baton.now())


class Event:
    """A flag that tasks wait for."""

    def __init__(self) -> None:
        self._baton = _baton
        self._is_set = False
        self._waits = WaitList()

    def is_set(self) -> bool:
        """Returns the flag."""
        return self._is_set

    def set(self) -> None:
        """Sets the flag: all that wait are ready."""
        self._is_set = True
        self._baton.wake(self._waits, None)

    def clear(self) -> None:
        """Clears the flag."""
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Waits for the flag, and returns it."""
        self._baton.wait(self._waits, timeout, unless=self.is_set)
        return self._is_set


class Semaphore:
    """A number that tasks take from."""

    def __init__(self, value: int = 1):
        if value < 0:
            raise ValueError(f"semaphore value {value} is negative: expected 0 or more")
        self._baton = _baton
        self._value = value
        self._waits = WaitList()

    @property
    def counter(self) -> int:
        """What can be taken."""
        return self._value

    def locked(self) -> bool:
        """Returns whether acquire would wait."""
        return self._value <= 0

    def _take(self) -> bool:
        if self._value <= 0:
            return False
        self._value -= 1
        return True

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """Takes one, or waits for it; returns whether it has one."""
        deadline = _Deadline(self._baton, timeout if timeout is None or timeout >= 0 else None)
        # Not under the baton's mutex alone: only tasks and adopted threads take, one at a time.
        while not self._take():
            left = deadline.left()
            if not blocking or left == 0:
                return False
            self._baton.wait(self._waits, left, unless=lambda: self._value > 0)
        return True

    def release(self) -> None:
        """Gives one back."""
        self._value += 1
        self._baton.wake(self._waits)

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_exception: object) -> None:
        self.release()


class BoundedSemaphore(Semaphore):
    """A semaphore that never has more than at first."""

    def __init__(self, value: int = 1):
        super().__init__(value)
        self._bound = value

    def release(self) -> None:
        """Gives one back."""
        if self._value >= self._bound:
            raise ValueError("the semaphore was released more often than acquired")
        super().release()


class Queue:
    """A queue that tasks wait at. maxsize None, 0 or less: without a bound.

    Of the tasks that wait for space, one at a time is woken, in order. A task that has put `share` items in a row waits behind
    them, so that one that always has items does not keep the queue full for the others.
    """

    def __init__(self, maxsize: int | None = None, share: int | None = None):
        self.maxsize = maxsize
        self.share = share
        self._baton = _baton
        self._items: deque[Any] = deque()
        self._getters = WaitList()
        self._putters = WaitList()
        # Whether a task has been woken from `_putters` and has not run since.
        self._is_putter_woken = False
        # The task that has put last, and how many items in a row.
        self._last_putter: Task | None = None
        self._in_a_row = 0

    def qsize(self) -> int:
        """Returns the number of items."""
        return len(self._items)

    def empty(self) -> bool:
        """Returns whether there are no items."""
        return not self._items

    def full(self) -> bool:
        """Returns whether put would wait."""
        return bool(self.maxsize and 0 < self.maxsize <= len(self._items))

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """Appends an item; waits for space."""
        if self.full():
            self._wait_for_space(block, timeout)
        elif self.share is not None:
            self._wait_for_turn(self.share)
        self._items.append(item)
        self._baton.wake(self._getters)
        if not self.full():
            self._wake_putter()

    def _wait_for_space(self, block: bool, timeout: float | None) -> None:
        deadline = _Deadline(self._baton, timeout)
        while self.full():
            left = deadline.left()
            if not block or left == 0:
                raise QueueFull
            self._wait_as_putter(left, lambda: not self.full())

    def _wait_for_turn(self, share: int) -> None:
        putter = self._baton.current()
        if putter is not self._last_putter:
            self._last_putter, self._in_a_row = putter, 0
        elif self._in_a_row >= share and (self._putters.tasks or self._is_putter_woken):
            self._in_a_row = 0
            # Each wakes the next after its item.
            self._wake_putter()
            self._wait_as_putter(None, None)
            self._wait_for_space(True, None)
        self._in_a_row += 1

    def _wait_as_putter(self, timeout: float | None, unless: Callable[[], bool] | None) -> None:
        try:
            self._baton.wait(self._putters, timeout, unless)
        finally:
            self._is_putter_woken = False

    def _wake_putter(self) -> None:
        if self._putters.tasks and not self._is_putter_woken:
            self._is_putter_woken = self._baton.wake(self._putters)

    def push(self, item: Any) -> None:
        """Appends an item, also above the bound."""
        self._items.append(item)
        self._baton.wake(self._getters)

    def put_nowait(self, item: Any) -> None:
        """Appends an item, or raises QueueFull."""
        self.put(item, block=False)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Takes the first item; waits for one."""
        if not self._items:
            self._wait_for_item(block, timeout)
        item = self._items.popleft()
        if not self.full():
            self._wake_putter()
        return item

    def _wait_for_item(self, block: bool, timeout: float | None) -> None:
        deadline = _Deadline(self._baton, timeout)
        while not self._items:
            left = deadline.left()
            if not block or left == 0:
                raise QueueEmpty
            self._baton.wait(self._getters, left, unless=lambda: bool(self._items))

    def get_nowait(self) -> Any:
        """Takes the first item, or raises QueueEmpty."""
        return self.get(block=False)


class Timeout(BaseException):
    """Raises itself, or another exception, in the task that made it, when the time has passed.

    With exception=False a `with` statement ends silently.
    """

    def __init__(self, seconds: float | None = None, exception: Any = None):
        super().__init__()
        self.seconds = seconds
        self.exception = exception
        self._timer: Timer | None = None
        self.start()

    def start(self) -> None:
        """Starts the time."""
        if self.seconds is None:
            return
        task = _baton.current()
        if task is None:
            raise RuntimeError("a Timeout can be made only in a task: start one with hub.spawn")
        self._timer = _baton.throw_after(self.seconds, task, self._raised())

    def _raised(self) -> BaseException:
        if self.exception is None or isinstance(self.exception, bool):
            return self
        made = self.exception() if isinstance(self.exception, type) else self.exception
        if not isinstance(made, BaseException):
            raise TypeError(f"{made!r} is no exception: expected an exception, a class of exceptions, or False")
        return made

    @property
    def pending(self) -> bool:
        """Whether it may still raise."""
        return self._timer is not None and not self._timer.is_cancelled

    def cancel(self) -> None:
        """Prevents the exception."""
        if self._timer is not None:
            self._timer.cancel()

    close = cancel

    def __enter__(self) -> Timeout:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, value: BaseException | None, _traceback: TracebackType | None
    ) -> bool:
        self.cancel()
        return value is self and self.exception is False

    def __str__(self) -> str:
        if self.seconds is None:
            return ""
        return f"{self.seconds:g} second{'' if self.seconds == 1 else 's'}"


def listen(address: tuple[str, int], family: int = socket.AF_INET, backlog: int = 50) -> socket.socket:
    """Returns a socket that listens."""
    from urtica_ryu import patched

    listening = patched.Socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(address)
    listening.listen(backlog)
    return listening


def connect(address: tuple[str, int], family: int = socket.AF_INET) -> socket.socket:
    """Returns a connected socket."""
    from urtica_ryu import patched

    connected = patched.Socket(family, socket.SOCK_STREAM)
    connected.connect(address)
    return connected


class StreamServer:
    """Calls a function in a task for each connection."""

    def __init__(self, listen_info: tuple[str, int], handle: Callable[[socket.socket, Any], object]):
        family = socket.AF_INET6 if ":" in listen_info[0] else socket.AF_INET
        self.server = listen(listen_info, family)
        self.handle = handle

    def serve_forever(self) -> None:
        """Accepts connections until the task is killed."""
        while True:
            connection, address = self.server.accept()
            spawn(self.handle, connection, address)
