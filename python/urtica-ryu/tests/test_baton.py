"""The baton, and the calls that hand it on: mostly by a simulated clock, where each order is exact."""

import queue
import threading

import pytest

from urtica_ryu import hub
from urtica_ryu.baton import TaskExit

DEADLINE = 30


@pytest.fixture
def log():
    return []


def run(main):
    """Runs a function as a task by the system's clock, and returns its result; raises what it raises."""
    results: queue.Queue = queue.Queue()

    def keep():
        try:
            results.put((main(), None))
        except BaseException as error:
            results.put((None, error))

    hub.spawn(keep)
    result, error = results.get(timeout=DEADLINE)
    if error is not None:
        raise error
    return result


def test_tasks_run_in_the_order_of_their_start(baton, log):
    for name in "abc":
        hub.spawn(log.append, name)
    baton.advance(0)
    assert log == ["a", "b", "c"]


def test_tasks_that_yield_run_in_turns(baton, log):
    def loop(name):
        for _ in range(3):
            log.append(name)
            hub.sleep(0)

    for name in "abc":
        hub.spawn(loop, name)
    baton.advance(0)
    assert "".join(log) == "abcabcabc"


def test_three_loops_that_sleep_run_in_exact_order(baton, log):
    def loop(name, seconds):
        while True:
            hub.sleep(seconds)
            log.append(f"{name}{baton.now():g}")

    for name, seconds in [("a", 2), ("b", 3), ("c", 1)]:
        hub.spawn(loop, name, seconds)
    baton.advance(6)
    # At one time, the loop that went to sleep first wakes first.
    assert " ".join(log) == "c1 a2 c2 b3 c3 a4 c4 c5 b6 a6 c6"
    assert baton.now() == 6


def test_no_dictionary_changes_during_an_iteration():
    numbers = dict.fromkeys(range(100), 0)
    ended = hub.Event()

    def change():
        for number in range(100, 3000):
            numbers[number] = 0
            if number % 50 == 0:
                hub.sleep(0)
        ended.set()

    def iterate():
        while not ended.is_set():
            assert sum(numbers.values()) == 0
            hub.sleep(0)

    def main():
        tasks = [hub.spawn(change), hub.spawn(change)]
        iterate()
        hub.joinall(tasks)

    run(main)


def test_a_parked_task_is_killed_in_the_call_in_which_it_waits(baton, log):
    event = hub.Event()

    def parked():
        try:
            event.wait()
        except TaskExit:
            log.append("killed")
            raise

    def killer(task):
        hub.kill(task)
        log.append("after")

    task = hub.spawn(parked)
    hub.spawn(killer, task)
    baton.advance(0)
    assert log == ["killed", "after"]
    assert task.dead
    event.set()


def test_a_killed_task_that_has_not_begun_never_begins(baton, log):
    def main():
        task = hub.spawn(log.append, "ran")
        hub.kill(task)
        hub.joinall([task])
        log.append("joined")

    hub.spawn(main)
    baton.advance(0)
    assert log == ["joined"]


def test_a_task_may_go_on_after_being_killed_and_be_killed_again(baton, log):
    def stubborn():
        try:
            hub.sleep(10)
        except TaskExit:
            log.append("no")
        hub.sleep(10)
        log.append("slept")

    task = hub.spawn(stubborn)
    hub.spawn_after(1, hub.kill, task)
    baton.advance(10)
    assert log == ["no"]
    baton.advance(1)
    assert log == ["no", "slept"]
    hub.kill(task)


def test_killing_oneself_ends_the_task(baton, log):
    def main():
        try:
            hub.kill(hub.getcurrent())
        finally:
            log.append("ended")

    task = hub.spawn(main)
    baton.advance(0)
    assert log == ["ended"]
    assert task.dead


def test_the_item_of_a_killed_task_is_for_the_next(baton, log):
    items = hub.Queue()

    def get(name):
        log.append((name, items.get()))

    def main(first):
        items.put("item")
        hub.kill(first)

    first = hub.spawn(get, "first")
    hub.spawn(get, "second")
    baton.advance(0)
    hub.spawn(main, first)
    baton.advance(0)
    assert log == [("second", "item")]


def test_a_timeout_raises_itself_from_the_call_in_which_the_task_waits(baton, log):
    def main():
        try:
            with hub.Timeout(2):
                hub.Event().wait()
        except hub.Timeout as raised:
            log.append((str(raised), baton.now()))

    hub.spawn(main)
    baton.advance(5)
    assert log == [("2 seconds", 2)]


def test_a_timeout_with_false_ends_the_statement_silently(baton, log):
    def main():
        with hub.Timeout(2, False):
            hub.sleep(10)
            log.append("slept")
        log.append(baton.now())

    hub.spawn(main)
    baton.advance(5)
    assert log == [2]


@pytest.mark.parametrize("given", [KeyError, KeyError("late")])
def test_a_timeout_raises_another_exception(baton, log, given):
    def main():
        try:
            with hub.Timeout(2, given):
                hub.sleep(10)
        except KeyError:
            log.append(baton.now())

    hub.spawn(main)
    baton.advance(5)
    assert log == [2]


def test_a_cancelled_timeout_raises_nothing(baton, log):
    def main():
        timeout = hub.Timeout(2)
        assert timeout.pending
        timeout.cancel()
        hub.sleep(10)
        log.append(timeout.pending)

    hub.spawn(main)
    baton.advance(20)
    assert log == [False]


def test_the_inner_of_two_timeouts_passes_the_outer_on(baton, log):
    def main():
        try:
            with hub.Timeout(1) as outer:
                with hub.Timeout(2, False):
                    hub.sleep(10)
                log.append("inner")
        except hub.Timeout as raised:
            log.append(raised is outer)

    hub.spawn(main)
    baton.advance(5)
    assert log == [True]


def test_a_timeout_that_passes_while_the_task_runs_is_raised_in_its_next_wait():
    passed = threading.Event()

    def main():
        timeout = hub.Timeout(0.01)
        # Holds the baton; the timer fires meanwhile.
        while not hub.baton().current()._overdue:
            passed.wait(0.001)
        try:
            hub.sleep(0)
        except hub.Timeout as raised:
            return raised is timeout

    assert run(main)


def test_what_is_thrown_while_the_task_runs_is_raised_in_its_next_wait():
    running, thrown, tasks = threading.Event(), threading.Event(), []

    def throw():
        running.wait(DEADLINE)
        hub.baton().throw(tasks[0], KeyError("thrown"))
        thrown.set()

    def main():
        tasks.append(hub.baton().current())
        running.set()
        # Holds the baton.
        thrown.wait(DEADLINE)
        hub.Event().wait()

    thrower = threading.Thread(target=throw)
    thrower.start()
    with pytest.raises(KeyError, match="thrown"):
        run(main)
    thrower.join()


def test_a_bounded_queue_lets_the_writer_wait(baton, log):
    items = hub.Queue(2)

    def write():
        for number in range(5):
            items.put(number)
            log.append(f"put {number}")

    def read():
        for _ in range(5):
            log.append(f"get {items.get()}")

    hub.spawn(write)
    hub.spawn(read)
    baton.advance(0)
    assert log[:3] == ["put 0", "put 1", "get 0"]
    assert [line for line in log if line.startswith("get")] == [f"get {number}" for number in range(5)]


def fill(items, name, count):
    """Has a task put items without a pause."""
    return hub.spawn(lambda: [items.put(name) for _ in range(count)])


@pytest.mark.parametrize("share", [None, 1, 2, 4])
def test_writers_of_a_full_queue_take_turns(baton, share):
    items = hub.Queue(4, share)
    for name in "abc":
        fill(items, name, 60)
    read = [0] * 3

    def look():
        for _ in range(90):
            read["abc".index(items.get())] += 1

    hub.spawn(look)
    baton.advance(0)
    assert min(read) >= 30 - 2 * (share or 4), read


@pytest.mark.parametrize("share", [None, 2])
def test_each_space_of_a_queue_is_used_though_its_reader_stops(baton, share):
    items = hub.Queue(3, share)
    for name in "abcdef":
        fill(items, name, 1)
    baton.advance(0)
    assert items.qsize() == 3
    hub.spawn(lambda: [items.get() for _ in range(3)])
    baton.advance(0)
    assert items.qsize() == 3
    assert [items.get_nowait() for _ in range(3)] == ["d", "e", "f"]


@pytest.mark.parametrize("share", [None, 1])
def test_killed_writers_keep_no_other_from_a_queue(baton, share):
    items = hub.Queue(1, share)
    tasks = [fill(items, name, 3) for name in "abcd"]
    baton.advance(0)
    read = []

    def look():
        for task in [tasks[1], tasks[0], None, *[None] * 4]:
            read.append(items.get())
            if task:
                task.kill()

    hub.spawn(look)
    baton.advance(0)
    assert len(read) == 7 and set(read[3:]) == {"c", "d"}


def test_queues_without_waiting_raise_full_and_empty(baton, log):
    items = hub.Queue(1)
    items.put_nowait(1)
    with pytest.raises(queue.Full):
        items.put_nowait(2)
    assert items.get_nowait() == 1
    with pytest.raises(queue.Empty):
        items.get_nowait()


def test_waits_end_by_their_timeouts(baton, log):
    def main():
        log.append(hub.Event().wait(1))
        try:
            hub.Queue().get(timeout=2)
        except hub.QueueEmpty:
            log.append(baton.now())

    hub.spawn(main)
    baton.advance(5)
    assert log == [False, 3]


def test_a_semaphore_is_given_in_order(baton, log):
    semaphore = hub.BoundedSemaphore(1)

    def work(name):
        with semaphore:
            hub.sleep(1)
            log.append(f"{name}{baton.now():g}")

    for name in "abc":
        hub.spawn(work, name)
    baton.advance(5)
    assert log == ["a1", "b2", "c3"]
    with pytest.raises(ValueError):
        semaphore.release()


def test_an_exception_ends_its_task_alone_and_is_logged(baton, log, caplog):
    def faulty():
        raise ValueError("on purpose")

    task = hub.spawn(faulty)
    hub.spawn(log.append, "other")
    baton.advance(0)
    assert task.dead
    assert log == ["other"]
    assert "on purpose" in caplog.text and "Traceback" in caplog.text


def test_threads_that_are_no_tasks_wake_tasks_and_wait_like_them():
    items, answers = hub.Queue(), hub.Queue()

    def answer():
        while (item := items.get()) is not None:
            answers.put(item * 2)

    task = hub.spawn(answer)
    for number in range(20):
        items.put(number)
        assert answers.get(timeout=DEADLINE) == number * 2
    items.put(None)
    hub.joinall([task])


def test_a_task_outside_lets_others_run_and_is_killed_when_it_returns(log):
    entered, leave = threading.Event(), threading.Event()

    def outside():
        try:
            with hub.baton().outside():
                entered.set()
                leave.wait(DEADLINE)
        except TaskExit:
            log.append("killed")
            raise

    def main():
        task = hub.spawn(outside)
        while not entered.is_set():
            hub.sleep(0.001)
        hub.kill(task)
        log.append("after")
        leave.set()
        hub.joinall([task])

    run(main)
    assert log == ["after", "killed"]
