"""Networks in the process, with programs of this package or with Ryu's."""

import os
import sys
import threading

from urtica import _native

# Simulated seconds between two looks at whether a call has ended, and those that it may take.
_STEP = 0.001
_CALL_WITHIN = 60.0
_STOP_WITHIN = 10.0


def _is_ryu(app):
    """Whether it is a Ryu program: a file, a module's name, a class of Ryu's, or a list of those."""
    if isinstance(app, (str, os.PathLike, list, tuple)):
        return True
    return isinstance(app, type) and any(base.__name__ in ("RyuApp", "OSKenApp") for base in app.__mro__)


def _program(app, seed, openflow, options):
    try:
        from urtica_ryu import simulated
    except ModuleNotFoundError as error:
        if error.name != "urtica_ryu":
            raise
        raise ModuleNotFoundError("Ryu programs need the package urtica-ryu: install it with pip", name=error.name) from None
    apps = app if isinstance(app, (list, tuple)) else [app]
    return simulated.Program(apps, seed=seed, openflow=openflow, options=options)


class Net(_native.Net):
    """A network in the process: switches, hosts, links and the controller, in simulated time, which passes only in calls.

    app: a callable that makes a handler for each switch; or Ryu programs: a file, a module's name, a class derived from
    RyuApp, or a list of those. options: those that ryu-manager would have on the command line, as a dictionary.
    """

    def __new__(cls, topology, app, *, seed=0, openflow=None, options=None):
        if not _is_ryu(app):
            if options is not None:
                raise ValueError("options are those of Ryu programs: expected none with another program")
            return super().__new__(cls, topology, app, seed=seed, openflow=openflow)
        program = _program(app, seed, openflow, options)
        try:
            made = super().__new__(cls, topology, program, seed=seed, is_raw=True)
        except BaseException:
            program.end()
            raise
        made._program, made._thread, made._has_stopped = program, threading.get_ident(), False
        return made

    _program = None

    @property
    def apps(self):
        """The running Ryu applications, by their names."""
        return self._ryu().manager.applications

    def call(self, function, *arguments):
        """Calls a function in a task of the Ryu program, in which it may wait in simulated time; returns its result."""
        return self._finish(self._ryu().spawn(function, *arguments), _CALL_WITHIN)

    def request(self, method, path, body=None):
        """Sends a request to the Ryu program's HTTP interface, without a server; returns the response, with status_code,
        text and json. A body that is no text is sent as JSON."""
        return self._finish(self._ryu().request(method, path, body), _CALL_WITHIN)

    def stop(self):
        """Stops the controller, and the program."""
        program = self._program
        if program is None:
            super().stop()
        elif not self._has_stopped:
            self._has_stopped = True
            try:
                if program.failure is None and self._wait(call := program.stop(), _STOP_WITHIN):
                    call.result()
            finally:
                super().stop()
                program.end()

    def take_exceptions(self):
        """Returns the exceptions that handlers have raised since the last call."""
        raised = super().take_exceptions()
        if self._program is not None:
            raised += self._program.raised
            self._program.raised.clear()
        return raised

    def _ryu(self):
        if self._program is None:
            raise RuntimeError("this network has no Ryu program")
        if self._has_stopped:
            raise RuntimeError("the program has stopped")
        return self._program

    def _finish(self, call, within):
        if not self._wait(call, within):
            raise TimeoutError(f"the call has not ended within {within:g} simulated seconds")
        return call.result()

    def _wait(self, call, within):
        end = self.now + within
        while not call.is_done and self.now < end:
            self.run_for(_STEP)
        return call.is_done

    def __del__(self):
        # Its tasks are threads of the system. In another thread, or at the process's end, they cannot be ended.
        program = self._program
        if program is not None and not sys.is_finalizing() and self._thread == threading.get_ident():
            program.end()
