"""A test for `mn --custom`: repeats pingall until no ping is dropped.

The time until the switches are ready depends on the load of the machine; whether they become ready, on the controller.
"""

ROUNDS = 20


def reach(net):
    for _ in range(ROUNDS):
        if net.pingAll() == 0:
            return


tests = {"reach": reach}
