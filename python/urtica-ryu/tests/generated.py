"""Generated messages, as constructor calls: the same for each package, from a seed."""

import ipaddress
import random

#: The bits of addresses, by kind.
_ADDRESSES = {"mac": 48, "ipv4": 32, "ipv6": 128}
#: The kind of address of each field, or its number of bits.
_FIELDS_1_3 = {
    "in_port": 32,
    "metadata": 64,
    "eth_dst": "mac",
    "eth_src": "mac",
    "eth_type": 16,
    "vlan_vid": 13,
    "vlan_pcp": 3,
    "ip_dscp": 6,
    "ip_ecn": 2,
    "ip_proto": 8,
    "ipv4_src": "ipv4",
    "ipv4_dst": "ipv4",
    "tcp_src": 16,
    "udp_dst": 16,
    "arp_op": 16,
    "arp_spa": "ipv4",
    "arp_sha": "mac",
    "ipv6_src": "ipv6",
    "ipv6_flabel": 20,
    "mpls_label": 20,
    "pbb_isid": 24,
    "tunnel_id": 64,
}
_MASKED = {"metadata", "eth_dst", "eth_src", "vlan_vid", "ipv4_src", "ipv4_dst", "arp_spa", "ipv6_src", "tunnel_id"}
_FIELDS_1_0 = {
    "in_port": 16,
    "dl_src": "mac",
    "dl_dst": "mac",
    "dl_vlan": 16,
    "dl_vlan_pcp": 8,
    "dl_type": 16,
    "nw_tos": 8,
    "nw_proto": 8,
    "nw_src": "ipv4",
    "nw_dst": "ipv4",
    "tp_src": 16,
    "tp_dst": 16,
}


class Generator:
    """Makes calls from a seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def number(self, bits):
        return self.random.getrandbits(bits)

    def some(self, most, make, least=0):
        """Returns up to `most` calls, as the text of a list."""
        return f"[{', '.join(make() for _ in range(self.random.randint(least, most)))}]"

    def value(self, kind):
        """Returns a value of a field: a number, or an address as text."""
        if kind not in _ADDRESSES:
            return self.number(kind)
        size = _ADDRESSES[kind] // 8
        data = self.number(8 * size).to_bytes(size, "big")
        return data.hex(":") if kind == "mac" else str(ipaddress.ip_address(data))

    def chosen(self, fields):
        return self.random.sample(sorted(fields), self.random.randrange(6))

    def actions(self, calls):
        # One or more: os-ken loses data of packet-outs of 1.0 without actions.
        return self.some(4, lambda: self.random.choice(calls)(), least=1)


class Generator13(Generator):
    """Messages of OpenFlow 1.3."""

    def match(self):
        def given(name):
            value = self.value(_FIELDS_1_3[name])
            if name in _MASKED and self.number(1):
                return f"{name}={(value, self.value(_FIELDS_1_3[name]))!r}"
            return f"{name}={value!r}"

        return f"OFPMatch({', '.join(map(given, self.chosen(_FIELDS_1_3)))})"

    def set_field(self):
        name = self.random.choice(sorted(_FIELDS_1_3))
        return f"OFPActionSetField({name}={self.value(_FIELDS_1_3[name])!r})"

    def action_list(self):
        return self.actions(
            [
                lambda: f"OFPActionOutput({self.number(32)}, {self.number(16)})",
                lambda: f"OFPActionGroup({self.number(32)})",
                lambda: f"OFPActionSetQueue({self.number(32)})",
                lambda: f"OFPActionPushVlan({self.number(16)})",
                lambda: "OFPActionPopVlan()",
                lambda: "OFPActionDecNwTtl()",
                lambda: f"OFPActionSetNwTtl({self.number(8)})",
                self.set_field,
            ]
        )

    def instruction(self):
        kinds = [
            lambda: f"OFPInstructionGotoTable({self.number(8)})",
            lambda: f"OFPInstructionMeter({self.number(32)})",
            lambda: f"OFPInstructionWriteMetadata({self.number(64)}, {self.number(64)})",
            lambda: f"OFPInstructionActions({self.random.choice([3, 4])}, {self.action_list()})",
        ]
        return self.random.choice(kinds)()

    def bucket(self):
        return f"OFPBucket({self.number(16)}, {self.number(32)}, {self.number(32)}, {self.action_list()})"

    def band(self):
        if self.number(1):
            return f"OFPMeterBandDrop({self.number(32)}, {self.number(32)})"
        return f"OFPMeterBandDscpRemark({self.number(32)}, {self.number(32)}, {self.number(8)})"

    def message(self):
        n = self.number
        kinds = [
            lambda: (
                f"OFPFlowMod(dp, {n(64)}, {n(64)}, {n(8)}, {n(8)}, {n(16)}, {n(16)}, {n(16)}, {n(32)}, {n(32)}, {n(32)}, {n(16)},"
                f" {self.match()}, {self.some(3, self.instruction)})"
            ),
            lambda: f"OFPPacketOut(dp, 0xFFFFFFFF, {n(32)}, {self.action_list()}, {self.random.randbytes(n(5))!r})",
            lambda: f"OFPGroupMod(dp, {n(16)}, {n(8)}, {n(32)}, {self.some(3, self.bucket)})",
            lambda: f"OFPMeterMod(dp, {n(16)}, {n(16)}, {n(32)}, {self.some(3, self.band)})",
            lambda: f"OFPFlowStatsRequest(dp, {n(16)}, {n(8)}, {n(32)}, {n(32)}, {n(64)}, {n(64)}, {self.match()})",
        ]
        return self.random.choice(kinds)()


class Generator10(Generator):
    """Messages of OpenFlow 1.0."""

    def match(self):
        given = [f"{name}={self.value(_FIELDS_1_0[name])!r}" for name in self.chosen(_FIELDS_1_0)]
        given += [f"{name}_mask={self.random.randrange(33)}" for name in ("nw_src", "nw_dst") if self.number(1)]
        return f"OFPMatch({', '.join(given)})"

    def action_list(self):
        return self.actions(
            [
                lambda: f"OFPActionOutput({self.number(16)}, {self.number(16)})",
                lambda: f"OFPActionVlanVid({self.number(16)})",
                lambda: "OFPActionStripVlan()",
                lambda: f"OFPActionSetDlSrc({self.value('mac')!r})",
                lambda: f"OFPActionSetNwDst({self.value('ipv4')!r})",
                lambda: f"OFPActionSetNwTos({self.number(8)})",
                lambda: f"OFPActionSetTpDst({self.number(16)})",
                lambda: f"OFPActionEnqueue({self.number(16)}, {self.number(32)})",
            ]
        )

    def message(self):
        n = self.number
        kinds = [
            lambda: (
                f"OFPFlowMod(dp, {self.match()}, {n(64)}, {n(16)}, {n(16)}, {n(16)}, {n(16)}, {n(32)}, {n(16)}, {n(16)},"
                f" {self.action_list()})"
            ),
            lambda: f"OFPPacketOut(dp, 0xFFFFFFFF, {n(16)}, {self.action_list()}, {self.random.randbytes(n(5))!r})",
        ]
        return self.random.choice(kinds)()


def calls(version, count, seed=1):
    """Returns constructor calls of messages."""
    generator = (Generator10 if version == 1 else Generator13)(seed)
    return [generator.message() for _ in range(count)]
