"""`python -m urtica_ryu`: what ryu-manager does."""

from __future__ import annotations

import logging
import os
import signal
import sys
from _thread import allocate_lock
from typing import Any

from urtica_ryu import hub, python2, use_names

USAGE = """usage: urtica ryu-manager [OPTION ...] FILE_OR_MODULE ...

Runs Ryu programs until Ctrl-C or SIGTERM.

  --ofp-tcp-listen-port PORT  the port to listen at (default: 6653 and 6633)
  --ofp-listen-host ADDRESS   the address to listen at (default: all)
  --verbose                   log at level DEBUG
  --default-log-level LEVEL   10 for DEBUG, 20 for INFO (default), 30 for WARNING
  --log-file FILE             log to a file, too
  --nouse-stderr              do not log to stderr
  --observe-links             look for links and hosts, for programs on ryu.topology
  --wsapi-host ADDRESS        the address of the programs' HTTP server (default: all)
  --wsapi-port PORT           the port of the programs' HTTP server (default: 8080)
  --from-python2              translate programs that were written for Python 2, in memory; needs fissix
  --version                   print the version

Other options are those that the programs register: --NAME VALUE or --NAME=VALUE."""

#: Options without a value.
_FLAGS = ("verbose", "use-stderr", "nouse-stderr", "observe-links", "noobserve-links", "enable-debugger", "from-python2")

#: Options of what is not there yet.
_REFUSED = ("ofp-ssl-listen-port", "ctl-privkey", "ctl-cert", "ca-certs", "config-file", "ofp-switch-address-list")

LOG = logging.getLogger("ryu.cmd.manager")


class UsageError(Exception):
    """The command line is wrong; the text says how."""


def parse(arguments: list[str]) -> tuple[list[str], dict[str, str | bool]]:
    """Returns the applications, and the options by name."""
    apps: list[str] = []
    options: dict[str, str | bool] = {}
    rest = iter(arguments)
    for argument in rest:
        if not argument.startswith("--"):
            apps.append(argument)
            continue
        name, has_value, value = argument[2:].partition("=")
        name = name.replace("_", "-")
        if has_value:
            options[name] = value
        elif name in _FLAGS or name in ("help", "version"):
            options[name] = True
        else:
            following = next(rest, None)
            if following is None:
                raise UsageError(f"--{name} has no value: expected --{name} VALUE")
            options[name] = following
    return apps, options


def _number(options: dict[str, str | bool], name: str, default: int) -> int:
    try:
        return int(options.get(name, default))
    except ValueError:
        raise UsageError(f"--{name} is {options[name]!r}: expected a number") from None


def start_log(options: dict[str, str | bool]) -> None:
    """Sets Python's logging up: lines as Ryu's, without a prefix."""
    root = logging.getLogger()
    root.setLevel(logging.DEBUG if options.get("verbose") else _number(options, "default-log-level", logging.INFO))
    if not options.get("nouse-stderr"):
        root.addHandler(logging.StreamHandler(sys.stderr))
    if file := options.get("log-file"):
        root.addHandler(logging.FileHandler(str(file)))


def _check(options: dict[str, str | bool]) -> None:
    for name in _REFUSED:
        if name in options:
            raise UsageError(f"--{name} is not supported yet: see 'What is not there yet' in the guide docs/ryu.md")


class _Program:
    """The applications, in a task; and the main thread, which waits for it and for signals."""

    def __init__(self, apps: list[str]):
        self.apps = apps
        self.status = 0
        self._ended = allocate_lock()
        self._ended.acquire()
        self._task: Any = None
        self._was_signalled = False

    def run(self) -> int:
        self._task = hub.spawn(self._main)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)
        self._ended.acquire()
        return self.status

    def _on_signal(self, _number: int, _frame: Any) -> None:
        if self._was_signalled:
            # The program blocks, and does not see the first one.
            self.status = 1
            self._end()
            return
        self._was_signalled = True
        # The main thread is no task, and holds nothing that this needs.
        hub.baton().throw(self._task._task, KeyboardInterrupt())

    def _end(self) -> None:
        if self._ended.locked():
            self._ended.release()

    def _main(self) -> None:
        from urtica_ryu.loading import LoadError

        try:
            self._serve()
        except KeyboardInterrupt:
            pass
        except LoadError as error:
            print(f"urtica ryu-manager: {error}", file=sys.stderr)
            self.status = 1
        except BaseException:
            LOG.exception("cannot run the applications")
            self.status = 1
        finally:
            self._end()

    def _serve(self) -> None:
        from ryu.base.app_manager import AppManager

        manager = AppManager.get_instance()
        try:
            services = manager.start(self.apps)
            # Imported if a program has an HTTP interface.
            web = sys.modules.get("ryu.app.wsgi")
            server = web.start_service(manager) if web else None
            if server is not None:
                hub.spawn(server.serve_forever)
            hub.joinall(services)
            hub.Event().wait()
        finally:
            manager.close()


def main(arguments: list[str]) -> int:
    """Runs the command line; returns the status."""
    try:
        apps, options = parse(arguments)
        if options.get("help"):
            print(USAGE)
            return 0
        if options.get("version"):
            from importlib.metadata import version

            print(f"urtica-ryu {version('urtica-ryu')}")
            return 0
        if not apps:
            raise UsageError("no application: expected a Python file, or the name of a module, such as my_app.py")
        start_log(options)
        _check(options)
    except UsageError as error:
        print(f"urtica ryu-manager: {error}", file=sys.stderr)
        return 2
    use_names()
    sys.path.insert(0, os.getcwd())
    hub.patch()
    if options.pop("from-python2", False):
        python2.enable()
    from ryu import cfg

    for name, value in options.items():
        is_negated = value is True and name.startswith("no") and name in _FLAGS
        cfg.CONF.give(name.removeprefix("no") if is_negated else name, not is_negated if value is True else value)
    return _Program(apps).run()
