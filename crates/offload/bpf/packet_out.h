/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* A packet-out of either version, with one output. */
#pragma once

#include "packet_in.h"

/* Maximum length, without its packet. */
#define MAX_PACKET_OUT_BYTES 40

#define TEMPLATE static const u8 __attribute__((aligned(8)))

TEMPLATE OF10_PACKET_OUT[24] = {
	0x01, 13, 0, 0,  0, 0, 0, 0,
	0, 0, 0, 0,  0, 0,  0, 8,                                              /* buffer_id, in_port, actions' length */
	0, 0,  0, 8,  0, 0,  0, 0,                                             /* output: port, max_len */
};

TEMPLATE OF13_PACKET_OUT[40] = {
	0x04, 13, 0, 0,  0, 0, 0, 0,
	0, 0, 0, 0,  0, 0, 0, 0,  0, 16,  0, 0, 0, 0, 0, 0,                    /* buffer_id, in_port, actions' length, pad */
	0, 0,  0, 16,  0, 0, 0, 0,  0, 0,  0, 0, 0, 0, 0, 0,                   /* output: port, max_len */
};

/* Writes the part of a packet-out before the packet. The length in its header includes `data_bytes` of packet. */
INLINE u32 write_packet_out(u8 *to, u32 version, u32 xid, const struct packet_in *packet, u32 port, u32 data_bytes)
{
	if (version == OF10) {
		copy_bytes(to, OF10_PACKET_OUT, sizeof(OF10_PACKET_OUT));
		put16(to + 2, sizeof(OF10_PACKET_OUT) + data_bytes);
		put32(to + 4, xid);
		put32(to + 8, packet->buffer_id);
		put16(to + 12, packet->in_port);
		put16(to + 20, port);
		return sizeof(OF10_PACKET_OUT);
	}
	copy_bytes(to, OF13_PACKET_OUT, sizeof(OF13_PACKET_OUT));
	put16(to + 2, sizeof(OF13_PACKET_OUT) + data_bytes);
	put32(to + 4, xid);
	put32(to + 8, packet->buffer_id);
	put32(to + 12, packet->in_port);
	put32(to + 28, port);
	return sizeof(OF13_PACKET_OUT);
}
