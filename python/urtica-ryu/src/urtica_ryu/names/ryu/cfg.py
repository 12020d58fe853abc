"""Options: `CONF.register_cli_opts([cfg.IntOpt("my-port", default=1)])`, then `CONF.my_port`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Opt:
    """An option of any text."""

    def __init__(self, name: str, default: Any = None, help: str = "", **_others: Any):
        self.name = name.replace("_", "-")
        self.dest = name.replace("-", "_")
        self.default = default
        self.help = help

    #: Whether the command line has a value for it.
    has_value = True

    def parse(self, text: str) -> Any:
        """Returns the value of a text."""
        return text


class StrOpt(Opt):
    """An option with a text."""


class IntOpt(Opt):
    """An option with a whole number."""

    def parse(self, text: str) -> Any:
        try:
            return int(text, 0)
        except ValueError:
            raise ValueError(f"--{self.name} is {text!r}: expected a whole number") from None


class FloatOpt(Opt):
    """An option with a number."""

    def parse(self, text: str) -> Any:
        try:
            return float(text)
        except ValueError:
            raise ValueError(f"--{self.name} is {text!r}: expected a number") from None


class BoolOpt(Opt):
    """An option that is given or not: `--name`, `--noname`."""

    has_value = False


class ListOpt(Opt):
    """An option with texts, separated by commas."""

    def parse(self, text: str) -> Any:
        return [part.strip() for part in text.split(",") if part.strip()]


class _Group:
    """Options, as attributes. What the command line has given before an option is registered counts, too."""

    def __init__(self) -> None:
        self._options: dict[str, Opt] = {}
        self._values: dict[str, Any] = {}
        self._given: dict[str, str | bool] = {}

    def register_opts(self, opts: Iterable[Opt], group: Any = None) -> None:
        """Adds options."""
        target = self if group is None else self._group(group)
        for opt in opts:
            target._options[opt.dest] = opt

    register_cli_opts = register_opts

    def register_opt(self, opt: Opt, group: Any = None) -> None:
        """Adds an option."""
        self.register_opts([opt], group)

    register_cli_opt = register_opt

    def _group(self, group: Any) -> _Group:
        name = str(getattr(group, "name", group))
        made: _Group = vars(self).setdefault(name, _Group())
        return made

    def set_override(self, name: str, value: Any, group: Any = None) -> None:
        """Sets an option."""
        (self if group is None else self._group(group))._values[name.replace("-", "_")] = value

    def give(self, name: str, value: str | bool) -> None:
        """Sets what the command line has for an option."""
        self._given[name.replace("-", "_")] = value

    def exchange(self, values: tuple[dict[str, Any], dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Replaces what is set, and what the command line has given; returns what it was."""
        before = (self._values, self._given)
        self._values, self._given = values
        return before

    def has(self, name: str) -> bool:
        """Returns whether an option is registered."""
        return name.replace("-", "_") in self._options

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self._options:
            raise AttributeError(f"there is no option {name}: expected one that was registered")
        if name in self._values:
            return self._values[name]
        opt = self._options[name]
        given = self._given.get(name)
        if given is None:
            return opt.default
        if isinstance(given, bool) or not opt.has_value:
            return given
        return opt.parse(given)

    __getitem__ = __getattr__


class OptGroup:
    """The name of a group of options."""

    def __init__(self, name: str, title: str = "", help: str = ""):
        self.name = name


#: The options.
CONF = _Group()
