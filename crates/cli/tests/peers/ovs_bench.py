#!/usr/bin/env python3
"""A stand-in for ovs-bench's programs `run` and `limit`, and for its modules `bench` and `pipelines`: prints records of
their form at once, and measures nothing."""

import argparse
import json
import sys
from pathlib import Path


def tell(kind, **record):
    print(json.dumps({"kind": kind, "switch": "Stand-in", **record}))


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pipeline")
    parser.add_argument("--flows", type=int)
    parser.add_argument("--updates", type=int)
    parser.add_argument("--load", type=int)
    parser.add_argument("--latency", action="store_true")
    parser.add_argument("--readings", type=int)
    parser.add_argument("--core", type=int)
    parser.add_argument("--json")
    return parser.parse_args()


def flows_file(pipeline):
    """Returns the file of ovs-bench's own pipelines."""
    return None


def run():
    args = arguments()
    point = {"pipeline": args.pipeline, "flows": args.flows, "mpps": 1.0, "settled": args.flows != 1}
    if Path(sys.argv[0]).name == "limit":
        tell("limit", mode="io", **{**point, "mpps": 50.0})
        tell("limit", mode="macswap", **point)
    elif args.load:
        tell("load", entries=args.load, openflow_s=1.0)
    else:
        tell_rates(args, point)


def tell_rates(args, point):
    # Beyond the end of its histogram, ovs-bench reports no value.
    bursts = {"burst_cycles_p50": 10_000, "burst_cycles_p99": None} if args.latency else {}
    tell("rate", updates_per_s=0, **point, **bursts, entries=entries(args.pipeline))
    if args.updates:
        tell("rate", updates_per_s=13_000, updates_per_s_asked=args.updates, **point)


def entries(pipeline):
    """Returns the number of lines of the flow entries with which another program has replaced a pipeline's."""
    bench = sys.modules.get("bench")
    path = bench and bench.flows_file(pipeline)
    return path and len(Path(path).read_text().splitlines())


def main(body):
    body()


if __name__ == "__main__":
    main(run)
