"""Switches that all connect by TLS at once, speak OpenFlow 1.0, and stay until this process is ended.

    python3 storm.py HOST PORT SWITCHES KEY CERTIFICATE CA

Prints the time of the first connection attempt, in seconds since 1970, and then the growing number of switches that have sent
their features reply.
"""

import asyncio
import ssl
import struct
import sys
import time

HEADER = struct.Struct("!BBHI")
HELLO, ECHO_REQUEST, ECHO_REPLY, FEATURES_REQUEST, FEATURES_REPLY = 0, 2, 3, 5, 6


def message(kind, xid, body=b""):
    return HEADER.pack(1, kind, HEADER.size + len(body), xid) + body


async def switch(number, host, port, context, identified):
    reader, writer = await asyncio.open_connection(host, port, ssl=context, ssl_handshake_timeout=120)
    writer.write(message(HELLO, 0))
    while True:
        _, kind, length, xid = HEADER.unpack(await reader.readexactly(HEADER.size))
        body = await reader.readexactly(length - HEADER.size)
        if kind == FEATURES_REQUEST:
            # A datapath id, no buffers, one table, no capabilities, no actions, no ports.
            writer.write(message(FEATURES_REPLY, xid, struct.pack("!QIB3xII", number, 0, 1, 0, 0)))
            identified(number)
        elif kind == ECHO_REQUEST:
            writer.write(message(ECHO_REPLY, xid, body))


async def storm(host, port, count, context):
    done = set()

    def identified(number):
        done.add(number)
        print(len(done), flush=True)

    print(time.time(), flush=True)
    await asyncio.gather(*(switch(number, host, port, context, identified) for number in range(1, count + 1)))


def main(host, port, count, key, certificate, authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # As in Open vSwitch: certificates of ovs-pki have no host names.
    context.check_hostname = False
    context.load_cert_chain(certificate, key)
    context.load_verify_locations(authority)
    asyncio.run(storm(host, int(port), int(count), context))


if __name__ == "__main__":
    main(*sys.argv[1:])
