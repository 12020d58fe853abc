"""A test for `mn --custom`: pingall, again and again until nothing is dropped.

How soon the switches are in order depends on the machine, and on how busy it is; that they will be depends on the controller.
"""

ROUNDS = 20


def reach(net):
    for _ in range(ROUNDS):
        if net.pingAll() == 0:
            return


tests = {"reach": reach}
