"""Has ovs-bench's `run` measure Open vSwitch on a workload of ours that it does not know, such as a rule set.

`urtica bench switch --write` writes the meters, groups, flow entries and packets; ovs-bench, which only takes pipelines of its
own, is told that these are the files of one. Meters and groups, which it does not know, are loaded before the entries.
OVS_BENCH is its folder, URTICA the program. Other options are `run`'s.

    OVS_BENCH=DIR URTICA=FILE python3 ovs_files.py --pipeline acl1-1k --flows 100000 --trace uniform [OPTION…]
"""

import argparse
import os
import subprocess
import sys
import tempfile
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

sys.dont_write_bytecode = True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pipeline", required=True)
    parser.add_argument("--flows", required=True)
    parser.add_argument("--trace", default="uniform")
    args, others = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="switch-figures.") as folder:
        flows_file, pcap = write(args, Path(folder))
        measure(args, others, flows_file, pcap)


def write(args, folder):
    """Writes the files of flow entries and of packets; returns their paths."""
    what = ("--pipeline", args.pipeline, "--flows", args.flows, "--trace", args.trace)
    command = [os.environ["URTICA"], "bench", "switch", *what, "--write", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return next(folder.glob("*.flows")), next(folder.glob("*.pcap"))


def separate(file):
    """Returns the meters, a file with the groups, and a file with the flow entries of a file."""
    kinds = {"meter=": [], "group_id=": [], "": []}
    for line in file.read_text().splitlines():
        next(lines for start, lines in kinds.items() if line.startswith(start)).append(line)
    flows_file, groups_file = file.with_suffix(".flows-only"), file.with_suffix(".groups")
    flows_file.write_text("".join(f"{line}\n" for line in kinds[""]))
    groups_file.write_text("".join(f"{line}\n" for line in kinds["group_id="]))
    return kinds["meter="], groups_file, flows_file


def measure(args, others, file, pcap):
    meters, groups_file, flows_file = separate(file)
    ovs_bench = Path(os.environ["OVS_BENCH"])
    sys.path.insert(0, str(ovs_bench))
    import bench
    import pipelines

    pipelines.name_list = lambda text: [text]
    bench.flows_file = lambda _: flows_file
    bench.pcap_file = lambda *_: pcap
    run = program(ovs_bench / "run")
    load_flows = run.Switch.load

    def load(switch, file):
        for meter in meters:
            switch.ofctl("add-meter", switch.openflow_socket, meter)
        if groups_file.stat().st_size:
            switch.ofctl("add-groups", switch.openflow_socket, groups_file)
        return load_flows(switch, file)

    run.Switch.load = load
    sys.argv = [str(ovs_bench / "run"), "--pipeline", args.pipeline, "--flows", args.flows, *others]
    bench.main(run.run)


def program(path):
    """Loads a program as a module."""
    loader = SourceFileLoader("ovs_bench_run", str(path))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
