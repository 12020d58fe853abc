"""Tasks, and what they wait for."""

from urtica_ryu.hub import *  # noqa: F403
from urtica_ryu.hub import HUB_TYPE as HUB_TYPE
