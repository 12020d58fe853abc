"""What the calls of `ryu.app.ofctl.api` raise."""

from __future__ import annotations

from typing import Any


class _ExceptionBase(Exception):
    """The attributes are its arguments."""

    def __init__(self, **kwargs: Any):
        vars(self).update(kwargs)
        super().__init__(", ".join(f"{name}={value}" for name, value in kwargs.items()))


class UnexpectedMultiReply(_ExceptionBase):
    """Two or more replies came where one was expected."""


class OFError(_ExceptionBase):
    """The switch has refused the message: `result` is its error."""


class InvalidDatapath(_ExceptionBase):
    """The switch `result` is not connected, or has left."""
