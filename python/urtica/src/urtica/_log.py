"""The log of what handlers raise, by Python's logging: the logger `urtica`."""

import logging

_logger = logging.getLogger("urtica")


def exception(switch, method, error):
    """Logs an exception with its traceback."""
    _logger.error("switch %s: %s raised an exception; disconnecting the switch", switch, method, exc_info=error)
