"""The document, the JSON and the plots."""

import json
import statistics
import textwrap
from dataclasses import asdict

import model
import plots
from document import array, plain, summary, table
from points import OVS, URTICA
from rows import ROWS, row_points
from sitting import progress

NAME = "switch-figures"

INTRODUCTION = """\
Measured by `make switch-figures`, {first} to {last} UTC, at {commits}; do not edit.

`urtica bench switch` is held against Open vSwitch's DPDK datapath with one forwarding thread, on the same flow entries
and byte-identical packets of 64 bytes from memory, on core {core}; each row says of which machine.

- {switches}
- load average {load_average}; stolen by the hypervisor during the runs: median {stolen:.1%}, at most {stolen_most:.1%}

The sides are interleaved, point by point, through {rounds} round(s), in a random order. A turn is one
reading. Ours takes {seconds:g} s ({updates_seconds:g} s under updates) after a warm-up as long; Open vSwitch's takes a
second, once its caches have settled, after 3 s to 30 s. Figures are medians over the rounds; a ratio,
ours over the other's, is the median of the rounds' ratios. Where its 95 % interval (bootstrap over the rounds) has the target
in it, nothing is decided: *inconclusive*.
"""

PLOTS = """\
## Packet rate by active flows

![Packet rate by active flows, a panel for each pipeline](switch-figures-rate.svg)

## Latency by active flows

![Cycles per burst by active flows, gateway](switch-figures-latency.svg)

What is beyond Open vSwitch's histogram, which tells no more than that, is drawn at its end, 24,000,000 cycles.

## Rate under route updates

![Packet rate by route updates per second, gateway](switch-figures-updates.svg)

Bars go from the least to the most of the rounds.
"""

REST = """\
## What was not measured

- A network card: no DMA, descriptors or PCIe. Open vSwitch's packets come from and go to DPDK ports in memory, ours come from
  and go to rings in memory (`docs/bench-switch.md`), and each costs what it costs; row 4 takes both off.
- What a network card does for Open vSwitch: it gives no hash and no checksum status here, so that each packet is hashed
  in software. Neither side has huge pages set aside.
- Several cores, large packets, packets for the controller, meters, groups, and entries that expire. Our switch counts
  packets and bytes of each entry, as Open vSwitch does.
- How soon a flow mod takes effect in Open vSwitch. Its updates are counted when its tables have them; its caches
  follow.

## Again

It takes Debian 12 on x86-64, root, two cores with nothing else on them, 8 GiB of memory, and ovs-bench, which is no
part of this project, in a folder of its own and set up there (`setup`):

```sh
make switch-figures OVS_BENCH=DIR                            # a whole sitting, an hour and a half
OVS_BENCH=DIR python3 tools/switch-figures --continue        # after an interruption
OVS_BENCH=DIR python3 tools/switch-figures --rows 3,7        # these rows anew
python3 tools/switch-figures --document                      # the documents again, from what is kept
```

Runs are kept in `target/switch-figures.jsonl`, and all are in `switch-figures.json` here.
"""


def write_documents(folder, lines, failures, sitting):
    drawn = {"rate": plots.rates(sitting), "latency": plots.latency(sitting), "updates": plots.updates(sitting)}
    for name, svg in drawn.items():
        (folder / f"{NAME}-{name}.svg").write_text(svg)
    text = document(lines, failures, sitting)
    (folder / f"{NAME}.md").write_text(text)
    (folder / f"{NAME}.json").write_text(raw(lines, failures, sitting))
    print(table(lines))
    progress(f"wrote {NAME}.md, .json and {len(drawn)} plots to {folder}")


def document(lines, failures, sitting):
    targets = [line for line in lines if line.target]
    parts = [
        "# The switch's figures\n",
        summary(targets)
        + (" THIS WAS A QUICK SITTING: ITS FIGURES MEAN NOTHING." if sitting.settings.quick else "")
        + "\n",
        introduction(sitting),
        *filter(None, (section(number, lines, failures, sitting) for number in ROWS)),
        PLOTS,
        model.section(sitting),
        REST,
        commands(lines),
    ]
    return "\n".join(parts)


def section(number, lines, failures, sitting):
    """Returns the section of a row: its title, where it was measured, and its lines. Empty if this sitting lacks it."""
    own = [line for line in lines if line.row == number]
    if not own and number not in failures:
        return ""
    machines = sitting.machines(row_points(sitting.settings, number))
    parts = [
        f"## Row {number}. {ROWS[number].name}\n",
        filled(ROWS[number].about),
        filled(f"Measured on: {'; and on '.join(machines) or 'no machine yet'}."),
        table(own),
    ]
    if number in failures:
        parts.append(filled(f"It lacks {failures[number]}."))
    return "\n".join(parts)


def filled(text):
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False) + "\n"


def commands(lines):
    """Returns each command once, since most serve several lines."""
    unique = dict.fromkeys(command for line in lines for command in line.commands)
    return "## The commands\n\nEach was run once a round.\n\n```sh\n" + "\n".join(unique) + "\n```\n"


def introduction(sitting):
    settings, runs = sitting.settings, list(sitting.runs.values())
    times = [run.time[:16].replace("T", " ") for run in runs] or ["never"]
    stolen = [run.stolen for run in runs] or [0]
    return INTRODUCTION.format(
        **sitting.machine,
        first=min(times),
        last=max(times),
        commits=" and ".join(dict.fromkeys(run.commit for run in runs)),
        switches=" and ".join(versions(runs)),
        stolen=statistics.median(stolen),
        stolen_most=max(stolen),
        core=settings.core,
        rounds=settings.rounds,
        seconds=settings.seconds,
        updates_seconds=2 * settings.seconds,
    )


def versions(runs):
    """Returns the versions that the sides report."""
    records = [record for run in runs if run.side in (URTICA, OVS) for record in run.records]
    return dict.fromkeys(record["switch"] for record in records)


def raw(lines, failures, sitting):
    """Returns all measurements as JSON, with one line for each line of the table and for each run."""
    facts = {"settings": asdict(sitting.settings), "machine": sitting.machine, "not_measured": failures}
    members = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in facts.items()]
    members.append(array("lines", [plain(line) for line in lines]))
    members.append(array("runs", [asdict(run) for run in sitting.runs.values()]))
    return "{\n" + ",\n".join(members) + "\n}\n"
