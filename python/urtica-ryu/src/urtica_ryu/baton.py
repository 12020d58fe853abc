"""The baton: of all threads of a program, only the one that holds it runs.

**Why.** Ryu programs were written for green threads: between two calls that wait, nothing else of the program runs. Threads of
the system would change a dictionary while another iterates over it.

**How.** Each task is a thread of the system, which runs only while it holds the baton. A task that waits hands the baton to the
task that has been ready for longest. Threads that are not tasks, such as those that serve sockets, may wake tasks at any time;
when one of them wants to wait for something, it becomes a task for that time.

**Cost.** Handing on is one lock released and one acquired, some microseconds.

**Locking.** `Baton._mutex` protects the state of all tasks, timers and wait lists. It is held for moments, never while a
program's code runs, and no other lock is taken under it.
"""

from __future__ import annotations

import contextlib
import enum
import gc
import heapq
import itertools
import logging
import os
import select
import sys
import threading
import time
from _thread import allocate_lock, start_new_thread
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

_logger = logging.getLogger("ryu.lib.hub")

# Before the program's modules are patched.
_Condition = threading.Condition
_monotonic = time.monotonic
_poll = select.poll

#: The number of times that Baton.end raises TaskExit in tasks that catch it.
_KILLS = 10


class TaskExit(BaseException):
    """Raised in a task that is killed."""


class State(enum.Enum):
    """The states of a task: new → running; running → ready, parked or outside → ready → running; and done at the end."""

    NEW = "new"
    READY = "ready"
    RUNNING = "running"
    PARKED = "parked"
    OUTSIDE = "outside"
    DONE = "done"


class Timer:
    """A call in the future. It runs without the baton, must be short, and must not wait."""

    __slots__ = ("at", "call", "is_cancelled")

    def __init__(self, at: float, call: Callable[[], None]):
        self.at = at
        self.call = call
        self.is_cancelled = False

    def cancel(self) -> None:
        """Prevents the call, unless it has begun."""
        self.is_cancelled = True


class WaitList:
    """Tasks that wait for one thing, in order."""

    __slots__ = ("tasks",)

    def __init__(self) -> None:
        self.tasks: deque[Task] = deque()


class Task:
    """A thread that runs only while it holds the baton."""

    def __init__(self, name: str, run: Callable[[], None]):
        self.name = name
        self.state = State.NEW
        self.ident: int | None = None
        #: The Thread that the program sees, if it made one.
        self.thread: threading.Thread | None = None
        self.ended = WaitList()
        #: Whether it waits while an application has too many events.
        self.is_source = False
        self._run = run
        self._gate = allocate_lock()
        self._gate.acquire()
        # While it is parked: where, and whether the wait has ended by a wake-up.
        self._waits: WaitList | None = None
        self._is_woken = False
        # Raised when it runs next.
        self._error: BaseException | None = None
        # Timers that want to raise something, and found the task running.
        self._overdue: list[tuple[Timer, BaseException]] = []

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""
        return self.state is State.DONE

    def __repr__(self) -> str:
        return f"<Task {self.name} {self.state.value}>"


class SimulatedClock:
    """A clock that stands still until Baton.advance moves it."""

    def __init__(self, now: float = 0.0):
        self.now = now

    def __call__(self) -> float:
        return self.now


class Blocked(RuntimeError):
    """Tasks have run for too long without waiting; the text says which one, and where it is."""


class Baton:
    """Runs tasks one at a time, by the system's clock or by a simulated one.

    With `on_ready` tasks run only within Baton.advance, so that a simulation that calls it is repeated exactly. Otherwise
    `on_ready` is called when a task becomes ready, in any thread and with the state protected: it must be short.
    """

    def __init__(self, clock: SimulatedClock | None = None, on_ready: Callable[[], None] | None = None):
        self.clock = clock
        #: Called with exceptions that have ended a task, or that `note_error` is given.
        self.on_error: Callable[[BaseException], None] | None = None
        #: The seconds that `advance` waits for tasks that do not wait; None for ever.
        self.patience: float | None = None
        self._on_ready = on_ready
        # The calls within which tasks run, if they do not run always.
        self._stretches = 0
        # Those that have been spawned and have not ended, in order.
        self._tasks: dict[Task, None] = {}
        self._mutex = allocate_lock()
        self._is_idle = _Condition(self._mutex)
        self._ready: deque[Task] = deque()
        self._running: Task | None = None
        self._timers: list[tuple[float, int, Timer]] = []
        self._numbers = itertools.count()
        self._local = threading.local()
        self._ticker: _Ticker | None = None

    def now(self) -> float:
        """Returns the time in seconds."""
        return self.clock() if self.clock else _monotonic()

    def current(self) -> Task | None:
        """Returns the calling task; None in a thread that is none."""
        task: Task | None = getattr(self._local, "task", None)
        return task

    # Starting and ending

    def spawn(self, function: Callable[..., object], *arguments: Any, name: str | None = None, **keywords: Any) -> Task:
        """Makes a task that is ready to call a function. The thread starts when it is the task's turn."""

        def run() -> None:
            function(*arguments, **keywords)

        task = Task(name or str(getattr(function, "__name__", "task")), run)
        with self._mutex:
            self._add_ready(task, State.NEW)
        return task

    def kill(self, task: Task) -> None:
        """Raises TaskExit in a task, which runs at once; the caller runs again after those that are ready. A task that has not
        begun never begins."""
        current = self.current()
        if task is current:
            raise TaskExit
        with self._mutex:
            if task.is_done or not self._interrupt(task, TaskExit(), is_first=True):
                return
            if current is None:
                return
            self._ready.append(current)
            current.state = State.READY
            self._hand_on()
        self._resume(current)

    def join(self, task: Task, timeout: float | None = None) -> bool:
        """Waits for a task's end; returns whether it has ended."""
        self.wait(task.ended, timeout, unless=lambda: task.is_done)
        return task.is_done

    def _main(self, task: Task) -> None:
        """A task's thread."""
        self._local.task = task
        task.ident = threading.get_ident()
        try:
            error, task._error = task._error, None
            if error is not None:
                raise error
            task._run()
        except TaskExit:
            pass
        except BaseException as error:
            _logger.exception("task %s raised an exception", task.name)
            self.note_error(error)
        with self._mutex:
            self._finish(task)
            self._hand_on()

    def note_error(self, error: BaseException) -> None:
        """Passes an exception of the program, which has been logged, to `on_error`."""
        if self.on_error is not None:
            self.on_error(error)

    def end(self) -> bool:
        """Raises TaskExit in all tasks, from a thread that is none; returns whether they have ended."""
        for _ in range(_KILLS):
            with self._mutex:
                for task in list(self._tasks):
                    self._interrupt(task, TaskExit())
                self._wait_idle()
                if not self._tasks:
                    return True
        return False

    def _finish(self, task: Task) -> None:
        task.state = State.DONE
        self._tasks.pop(task, None)
        task._overdue.clear()
        self._wake(task.ended, None)

    # Waiting and waking

    def wait(self, waits: WaitList, timeout: float | None = None, unless: Callable[[], bool] | None = None) -> bool:
        """Parks the calling task until it is woken; returns False if the time passed first.

        It does not park if `unless` returns True, which is called with the state protected: it must be short.
        """
        task = self.current()
        if task is None:
            return self._wait_as_task(waits, timeout, unless)
        timer = None
        with self._mutex:
            if unless is not None and unless():
                return True
            if timeout is not None:
                timer = self._call_at(self.now() + timeout, lambda: self._unpark(task))
            self._park(task, waits)
            self._hand_on()
        try:
            self._resume(task)
        except BaseException:
            if task._is_woken:
                # The wake-up is for the next one then.
                self.wake(waits)
            raise
        finally:
            if timer:
                timer.cancel()
        return task._is_woken

    def _wait_as_task(self, waits: WaitList, timeout: float | None, unless: Callable[[], bool] | None) -> bool:
        if unless is not None:
            with self._mutex:
                if unless():
                    return True
        with self.held():
            return self.wait(waits, timeout, unless)

    def wake(self, waits: WaitList, count: int | None = 1) -> bool:
        """Makes the first tasks of a list ready, all if count is None; returns whether there were any. From any thread."""
        with self._mutex:
            has_tasks = bool(waits.tasks)
            if has_tasks:
                self._wake(waits, count)
            return has_tasks

    def sleep(self, seconds: float) -> None:
        """Parks the calling task for this time; with 0 it runs again after those that are ready."""
        if seconds > 0:
            self.wait(WaitList(), seconds)
        else:
            self._yield()

    def _yield(self) -> None:
        task = self.current()
        if task is None:
            return
        with self._mutex:
            task.state = State.READY
            self._ready.append(task)
            self._raise_overdue(task)
            self._hand_on()
        self._resume(task)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Makes the calling thread a task, which holds the baton for the time of a `with` statement."""
        if self.current() is not None:
            yield
            return
        task = Task(f"thread {threading.get_ident()}", lambda: None)
        self._local.task = task
        with self._mutex:
            self._stretches += 1
            self._add_ready(task, State.READY)
        try:
            self._resume(task)
            yield
        finally:
            self._local.task = None
            with self._mutex:
                self._finish(task)
                self._hand_on()
                self._stretches -= 1
                if self._is_paused():
                    self._wait_idle()

    @contextlib.contextmanager
    def outside(self) -> Iterator[None]:
        """Lets other tasks run while the calling one waits for something that is not of the baton."""
        task = self.current()
        if task is None:
            yield
            return
        with self._mutex:
            task.state = State.OUTSIDE
            self._hand_on()
        try:
            yield
        finally:
            with self._mutex:
                self._add_ready(task, State.READY)
            self._resume(task)

    def wait_readable(self, file: int, timeout: float | None = None) -> bool:
        """Waits until a file can be read; returns False if the time passed first."""
        return self._wait_file(file, select.POLLIN, timeout)

    def wait_writable(self, file: int, timeout: float | None = None) -> bool:
        """Waits until a file can be written; returns False if the time passed first."""
        return self._wait_file(file, select.POLLOUT, timeout)

    def _wait_file(self, file: int, event: int, timeout: float | None) -> bool:
        waits = WaitList()
        ticker = self._start_ticker()
        ticker.add(file, event, waits)
        try:
            return self.wait(waits, timeout, unless=lambda: not ticker.has(waits))
        finally:
            ticker.remove(waits)

    # Interrupting

    def throw(self, task: Task, error: BaseException) -> None:
        """Raises an exception in a task, from the call in which it waits; if it runs, from the next one."""
        with self._mutex:
            self._interrupt(task, error)

    def throw_after(self, seconds: float, task: Task, error: BaseException) -> Timer:
        """Raises an exception in a task when the time has passed: in the call in which it waits then, or else in its next one
        unless the timer is cancelled before."""

        def fire() -> None:
            if task is self._running:
                task._overdue.append((timer, error))
            else:
                self._interrupt(task, error)

        with self._mutex:
            timer = self._call_at(self.now() + seconds, fire)
        return timer

    def call_after(self, seconds: float, call: Callable[[], None]) -> Timer:
        """Calls a function when the time has passed, which makes a task of it."""

        def fire() -> None:
            task = Task(getattr(call, "__name__", "timer"), call)
            self._add_ready(task, State.NEW)

        with self._mutex:
            return self._call_at(self.now() + seconds, fire)

    # Time

    def advance(self, seconds: float) -> None:
        """Moves the simulated clock, from a thread that is no task; returns when all tasks wait for a later time."""
        if self.clock is None:
            raise RuntimeError("the time of this baton is the system's: only a SimulatedClock can be moved")
        self.advance_to(self.clock.now + seconds)

    def advance_to(self, until: float) -> float | None:
        """Moves the simulated clock to this time; returns the time of the next timer, None without one."""
        clock = self.clock
        assert clock is not None
        with self._mutex, self._stretch():
            self._wait_idle()
            while (timer := self._next_timer(until)) is not None:
                clock.now = max(clock.now, timer.at)
                timer.call()
                self._wait_idle()
            clock.now = max(clock.now, until)
            while self._timers and self._timers[0][2].is_cancelled:
                heapq.heappop(self._timers)
            return self._timers[0][0] if self._timers else None

    @contextlib.contextmanager
    def _stretch(self) -> Iterator[None]:
        """Lets tasks run for the time of a `with` statement, if they do not run always. With the mutex held."""
        self._stretches += 1
        try:
            yield
        finally:
            self._stretches -= 1

    def _wait_idle(self) -> None:
        """Waits until all tasks wait."""
        with self._stretch():
            if self._running is None:
                self._hand_on()
            if not self._is_idle.wait_for(lambda: self._running is None and not self._ready, self.patience):
                raise Blocked(self._blocked())

    def _blocked(self) -> str:
        """The message about tasks that do not wait."""
        task = self._running
        # Garbage that is collected within it might need the lock that it holds.
        collects = gc.isenabled()
        gc.disable()
        frame = sys._current_frames().get(task.ident or 0) if task else None
        if collects:
            gc.enable()
        while frame is not None and frame.f_back is not None and __package__ == frame.f_globals.get("__package__"):
            frame = frame.f_back
        where = f" in {frame.f_code.co_filename}:{frame.f_lineno} ({frame.f_code.co_name})" if frame else ""
        return (
            f"the program has not waited for {self.patience:g} s: {task.name if task else 'a task'} is{where}; expected calls "
            "that wait in simulated time, such as hub.sleep and time.sleep"
        )

    def _next_timer(self, until: float) -> Timer | None:
        """Takes the first timer up to this time."""
        while self._timers and self._timers[0][0] <= until:
            timer = heapq.heappop(self._timers)[2]
            if not timer.is_cancelled:
                return timer
        return None

    def _call_at(self, at: float, call: Callable[[], None]) -> Timer:
        timer = Timer(at, call)
        heapq.heappush(self._timers, (at, next(self._numbers), timer))
        if self.clock is None and self._timers[0][2] is timer:
            self._start_ticker(is_locked=True).wake()
        return timer

    def _start_ticker(self, is_locked: bool = False) -> _Ticker:
        with contextlib.nullcontext() if is_locked else self._mutex:
            if self._ticker is None:
                self._ticker = _Ticker(self)
            return self._ticker

    # Below: with the mutex held

    def _add_ready(self, task: Task, state: State) -> None:
        task.state = state
        if state is State.NEW:
            self._tasks[task] = None
        self._ready.append(task)
        self._begin()

    def _is_paused(self) -> bool:
        return self._on_ready is not None and not self._stretches

    def _begin(self) -> None:
        """Gives the baton to the first task that is ready, if no task has it."""
        if self._running is not None:
            return
        if self._on_ready is not None and not self._stretches:
            self._on_ready()
        else:
            self._hand_on()

    def _hand_on(self) -> None:
        """Gives the baton to the first task that is ready."""
        if not self._ready:
            self._running = None
            self._is_idle.notify_all()
            return
        task = self._ready.popleft()
        self._running = task
        is_new = task.state is State.NEW
        task.state = State.RUNNING
        if is_new:
            start_new_thread(self._main, (task,))
        else:
            task._gate.release()

    def _park(self, task: Task, waits: WaitList) -> None:
        task.state = State.PARKED
        task._waits = waits
        task._is_woken = False
        waits.tasks.append(task)
        self._raise_overdue(task)
        if task._error is not None:
            # Thrown while it ran.
            self._unpark(task)

    def _raise_overdue(self, task: Task) -> None:
        for timer, error in task._overdue:
            if not timer.is_cancelled and task._error is None:
                self._interrupt(task, error)
        task._overdue.clear()

    def _unpark(self, task: Task, is_first: bool = False) -> None:
        if task.state is not State.PARKED:
            return
        if task._waits is not None:
            with contextlib.suppress(ValueError):
                task._waits.tasks.remove(task)
            task._waits = None
        task.state = State.READY
        if is_first:
            self._ready.appendleft(task)
        else:
            self._ready.append(task)
        self._begin()

    def _wake(self, waits: WaitList, count: int | None) -> None:
        for _ in range(len(waits.tasks) if count is None else min(count, len(waits.tasks))):
            task = waits.tasks.popleft()
            task._is_woken = True
            self._unpark(task)

    def _interrupt(self, task: Task, error: BaseException, is_first: bool = False) -> bool:
        """Returns whether the task will run to see the exception."""
        if task.state is State.DONE:
            return False
        if task.state is State.NEW:
            self._ready.remove(task)
            self._finish(task)
            return False
        task._error = error
        if task.state is State.READY and is_first and task in self._ready:
            self._ready.remove(task)
            self._ready.appendleft(task)
        self._unpark(task, is_first)
        return True

    # Without it

    def _resume(self, task: Task) -> None:
        """Waits for the baton, then raises what was thrown."""
        while True:
            try:
                task._gate.acquire()
                break
            except BaseException as error:
                # A signal's handler has raised it, in the main thread.
                if self._has_baton(task):
                    raise
                self.throw(task, error)
        thrown, task._error = task._error, None
        if thrown is not None:
            raise thrown

    def _has_baton(self, task: Task) -> bool:
        with self._mutex:
            return self._running is task and (task._gate.acquire(False) or True)


class _Ticker:
    """The thread that fires timers and waits for files."""

    def __init__(self, baton: Baton):
        self._baton = baton
        self._files: dict[int, tuple[int, int, WaitList]] = {}
        self._lock = allocate_lock()
        self._wake_up, self._waker = os.pipe()
        os.set_blocking(self._wake_up, False)
        os.set_blocking(self._waker, False)
        start_new_thread(self._main, ())

    def wake(self) -> None:
        """Has timers and files read again."""
        with contextlib.suppress(BlockingIOError):
            os.write(self._waker, b"\0")

    def add(self, file: int, event: int, waits: WaitList) -> None:
        """Wakes this list when the event happens."""
        with self._lock:
            self._files[id(waits)] = (file, event, waits)
        self.wake()

    def has(self, waits: WaitList) -> bool:
        """Returns whether the event has not happened yet."""
        return id(waits) in self._files

    def remove(self, waits: WaitList) -> None:
        """Forgets a list."""
        with self._lock:
            self._files.pop(id(waits), None)

    def _main(self) -> None:
        while True:
            delay_ms = self._fire()
            with self._lock:
                files = list(self._files.values())
            poll = _poll()
            poll.register(self._wake_up, select.POLLIN)
            for file in {file for file, _, _ in files}:
                poll.register(file, sum({event for other, event, _ in files if other == file}))
            happened = dict(poll.poll(delay_ms))
            if self._wake_up in happened:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake_up, 4096)
            self._wake_files(files, happened)

    def _wake_files(self, files: list[tuple[int, int, WaitList]], happened: dict[int, int]) -> None:
        failed = select.POLLERR | select.POLLHUP | select.POLLNVAL
        for file, event, waits in files:
            if happened.get(file, 0) & (event | failed):
                self.remove(waits)
                self._baton.wake(waits, None)

    def _fire(self) -> int | None:
        """Calls due timers; returns the milliseconds until the next one."""
        baton = self._baton
        with baton._mutex:
            if baton.clock is not None:
                return None
            now = baton.now()
            while (timer := baton._next_timer(now)) is not None:
                timer.call()
            if not baton._timers:
                return None
            return max(0, int((baton._timers[0][0] - now) * 1000) + 1)
