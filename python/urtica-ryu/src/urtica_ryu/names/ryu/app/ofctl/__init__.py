"""Messages to switches, and their replies, by calls that wait: `ryu.app.ofctl.api`."""
