"""Measures the cost of operating a controller, and writes docs/northbound-figures.md and .json.

Throughput with the HTTP interface, a scrape a second and a WebSocket client, and over TLS, each alternating with plain runs; a
thousand switches that connect by TLS at once; the flow entries of a large switch over HTTP; a program that changes among four;
requests from Schemathesis. Needs Linux, two cores, and what tools/setup installs. Run it on a quiet machine.

    python3 tools/northbound-figures                    all rows, half an hour
    python3 tools/northbound-figures --rows 1,3         some of them; printed, and written only with --out
    python3 tools/northbound-figures --quick --rows 1   a tiny run that shows that the tool works, and nothing else
"""

import sys
from pathlib import Path

# Shares controllers, targets, lines of a table and instruction counts with the controller's figures.
sys.path.append(str(Path(__file__).resolve().parent.parent / "figures"))

import http_rows
import tls_rows
from command import Figures, run

EXPLANATION = """\
Measured by `make northbound-figures` on {date}, at {commit}; do not edit. Each figure is the median of {rounds} round(s), with
the interval that has it with 95 % confidence (bootstrap); a ratio is taken within each round. What is compared is interleaved in an
order that is drawn. Controllers have core {server_core}, the load core {load_core}; each
run takes {ms} ms after a warm-up of a third, is repeated up to {repeats} times ({all_repeats} in all) where the
machine disturbed it for a tenth of the time, and a line whose answers were wrong or lost is not reached.

- {cpu}, {cores} cores, {memory_gib:.0f} GiB; Linux {kernel}
- load average {load_average}
- in the controllers' runs that count, waiting for a core: median {waited:.1%}, at most {waited_most:.1%}; stolen: median
  {stolen:.1%}, at most {stolen_most:.1%}

Keys are of RSA with 2048 bits, as `ovs-pki` makes them. The interface is described in [northbound.md](northbound.md), TLS in
[operating.md](operating.md#securing-the-channel).
"""

if __name__ == "__main__":
    groups = sorted((*http_rows.GROUPS, *tls_rows.GROUPS), key=lambda group: group.rows)
    run(Figures("northbound-figures", "Operating a controller: figures", EXPLANATION, tuple(groups)), __doc__)
