/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* A packet-in of either version, and the packet in it, with the fields that applications read. */
#pragma once

#include "bytes.h"

#define OF10 0x01
#define OF13 0x04
#define OFPT_PACKET_IN 10
#define OFP_NO_BUFFER 0xffffffffU
#define HEADER_BYTES 8

/* Length of packet-ins up to the packet. For 1.3, only if the match consists of `in_port`, as most switches send it. */
#define OF10_PACKET_IN_BYTES 18
#define OF13_PACKET_IN_BYTES 42

#define ETH_BYTES 14
#define IPPROTO_ICMP 1
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
#define IPPROTO_ICMPV6 58
#define IPPROTO_SCTP 132

/* The first port of 1.0 that may be reserved. */
#define OF10_ORDINARY_PORTS 0x8000

struct packet_in {
	u32 buffer_id;
	u32 in_port;
	u32 data_at;     /* offset of the packet in the message */
	u32 data_bytes;
	u32 total_bytes;
};

/* The headers that follow a packet's IPv4 header, for a match. */
enum upper {
	UPPER_NOT_PLAIN,  /* the packet is not an untagged, unfragmented IPv4 packet without options, or cut short */
	UPPER_PORTS,
	UPPER_ICMP,
	UPPER_NOTHING,
};

/* Reads the message of `bytes` bytes at `message`, of which at least OF13_PACKET_IN_BYTES can be read. Returns 0 if it is
 * not a packet-in that is answered here. */
INLINE int read_packet_in(const u8 *message, u32 bytes, u32 version, struct packet_in *packet)
{
	packet->buffer_id = get32(message + 8);
	packet->total_bytes = get16(message + 12);
	if (version == OF10) {
		packet->in_port = get16(message + 14);
		packet->data_at = OF10_PACKET_IN_BYTES;
	} else {
		/* OFPMT_OXM of length 12; OFPXMC_OPENFLOW_BASIC, field 0, length 4. */
		if (get32(message + 24) != 0x0001000c || get32(message + 28) != 0x80000004)
			return 0;
		packet->in_port = get32(message + 32);
		packet->data_at = OF13_PACKET_IN_BYTES;
	}
	if (bytes < packet->data_at + ETH_BYTES)
		return 0;
	packet->data_bytes = bytes - packet->data_at;
	return packet->buffer_id != OFP_NO_BUFFER || packet->data_bytes >= packet->total_bytes;
}

/* Returns whether this is an address of frames that end at the first bridge, such as spanning tree and LLDP. */
INLINE int is_link_local(u64 mac) { return mac >> 4 == 0x0180c2000000ULL >> 4; }

/* Returns the kind of the packet. At least 50 bytes of `frame` can be read. */
INLINE enum upper upper_of(const u8 *frame, u32 bytes)
{
	u32 payload, total;

	if (bytes < 38 || get16(frame + 12) != 0x0800 || frame[14] != 0x45)
		return UPPER_NOT_PLAIN;
	total = get16(frame + 16);
	if (total < 20 || get16(frame + 20) & 0x3fff)
		return UPPER_NOT_PLAIN;
	payload = bytes - 34 < total - 20 ? bytes - 34 : total - 20;
	switch (frame[23]) {
	case IPPROTO_TCP: {
		u32 header = frame[46] >> 4;

		return payload >= 20 && header >= 5 && header * 4 <= payload ? UPPER_PORTS : UPPER_NOT_PLAIN;
	}
	case IPPROTO_UDP:
		return payload >= 8 && get16(frame + 38) >= 8 ? UPPER_PORTS : UPPER_NOT_PLAIN;
	case IPPROTO_ICMP:
		return payload >= 8 ? UPPER_ICMP : UPPER_NOT_PLAIN;
	case IPPROTO_ICMPV6:
	case IPPROTO_SCTP:
		return UPPER_NOT_PLAIN;
	default:
		return UPPER_NOTHING;
	}
}
