"""The learning switch in each mode, and loads on it."""

from dataclasses import replace

from bench import L2, Side

# A switch has its kernel half after 1 s and 16 packet-ins.
WARM_UP_MS = 2000

WINDOW_32 = ("--window", "32")


def l2(mode, shards=1):
    """Returns `l2` with `--offload MODE`. Plain epoll is never refused."""
    command = ("urtica", "run", "l2", "--offload", mode, "--shards", str(shards), "--listen", "ptcp:{port}:{host}")
    return replace(L2, name=f"l2, {mode}", command=command, may_refuse=mode != "none")


# Few enough that all are known after the warm-up: in every mode, the program handles packets of new hosts.
HOSTS = 1000


def side(mode, load, switches, shards=1, hosts=HOSTS):
    return Side(mode, l2(mode, shards), mode=load, switches=switches, macs=("-M", str(hosts)))
