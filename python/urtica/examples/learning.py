"""A learning switch: python3 learning.py"""

import urtica


class Learning(urtica.App):
    def __init__(self, info):
        self.ports = {}

    def packet_in(self, switch, packet):
        self.ports[packet.eth_src] = packet.in_port
        port = self.ports.get(packet.eth_dst)
        if port is None:
            switch.forward(packet, urtica.FLOOD)
        else:
            switch.forward_with_rule(packet, port, idle_timeout=5)


if __name__ == "__main__":
    urtica.run(Learning)
