"""What programs use beside `ofctl_v1_0` and `ofctl_v1_3`: sending, and numbers as texts."""

from urtica_ryu.ofctl import integer as str_to_int
from urtica_ryu.ofctl import send_experimenter, send_msg, send_stats_request

__all__ = ["send_experimenter", "send_msg", "send_stats_request", "str_to_int"]
