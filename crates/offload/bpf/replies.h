/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* The messages of the learning switch: those of wire/src/exact.rs, and the delete of a host that has moved. Each function
 * writes one message and returns its length. */
#pragma once

#include "packet_out.h"

#define OFPP_FLOOD_OF10 0xfffb
#define OFPP_FLOOD_OF13 0xfffffffbU

/* Maximum length of each. */
#define MAX_DELETE_BYTES 72
#define MAX_FLOW_MOD_BYTES 160

TEMPLATE OF10_DELETE[72] = {
	0x01, 14, 0, 72,  0, 0, 0, 0,
	0, 0x3f, 0xff, 0xf7,  0, 0,  0, 0, 0, 0, 0, 0,  0, 0, 0, 0, 0, 0,      /* wildcards: all but dl_dst */
	0, 0,  0,  0,  0, 0,  0,  0,  0, 0,  0, 0, 0, 0,  0, 0, 0, 0,  0, 0,  0, 0,
	0, 0, 0, 0, 0, 0, 0, 0,  0, 3,  0, 0,  0, 0,  0x80, 0,                 /* cookie, command, timeouts, priority */
	0xff, 0xff, 0xff, 0xff,  0xff, 0xff,  0, 0,
};

TEMPLATE OF10_FLOW_MOD[80] = {
	0x01, 14, 0, 80,  0, 0, 0, 0,
	0, 0x10, 0, 0xc0,  0, 0,  0, 0, 0, 0, 0, 0,  0, 0, 0, 0, 0, 0,         /* wildcards, in_port, dl_src, dl_dst */
	0xff, 0xff,  0,  0,  0x08, 0x00,  0,  0,  0, 0,                        /* dl_vlan: none, pcp, dl_type, tos, proto */
	0, 0, 0, 0,  0, 0, 0, 0,  0, 0,  0, 0,                                 /* nw_src, nw_dst, tp_src, tp_dst */
	1, 0, 0, 0, 0, 0, 0, 0,  0, 0,  0, 5,  0, 0,  0x80, 0,                 /* cookie: program 1, command, idle 5 s, priority */
	0, 0, 0, 0,  0xff, 0xff,  0, 0,                                        /* buffer_id, out_port, flags */
	0, 0,  0, 8,  0, 0,  0, 0,                                             /* output: port, max_len */
};

TEMPLATE OF13_DELETE[64] = {
	0x04, 14, 0, 64,  0, 0, 0, 0,
	1, 0, 0, 0, 0, 0, 0, 0,  0xff, 0, 0, 0, 0, 0, 0, 0,                    /* cookie: program 1, cookie_mask */
	0xff,  3,  0, 0,  0, 0,  0x80, 0,  0xff, 0xff, 0xff, 0xff,             /* all tables, delete, priority, buffer_id */
	0xff, 0xff, 0xff, 0xff,  0xff, 0xff, 0xff, 0xff,  0, 0,  0, 0,         /* out_port, out_group, flags, pad */
	0, 1,  0, 14,  0x80, 0, 6, 6,  0, 0, 0, 0, 0, 0,  0, 0,                /* match: eth_dst, pad */
};

/* The start of each flow mod of 1.3. */
TEMPLATE OF13_HEAD[118] = {
	0x04, 14, 0, 0,  0, 0, 0, 0,
	1, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0, 0, 0, 0, 0, 0,                       /* cookie: program 1, cookie_mask */
	0, 0,  0, 5,  0, 0,  0x80, 0,  0, 0, 0, 0,                             /* table, command, idle 5 s, hard, priority, buffer */
	0xff, 0xff, 0xff, 0xff,  0xff, 0xff, 0xff, 0xff,  0, 0,  0, 0,         /* out_port, out_group, flags, pad */
	0, 1,  0, 0,                                                           /* match: type OXM, length */
	0x80, 0, 0 << 1, 4,   0, 0, 0, 0,                                      /*  52 in_port */
	0x80, 0, 3 << 1, 6,   0, 0, 0, 0, 0, 0,                                /*  60 eth_dst */
	0x80, 0, 4 << 1, 6,   0, 0, 0, 0, 0, 0,                                /*  70 eth_src */
	0x80, 0, 5 << 1, 2,   0x08, 0x00,                                      /*  80 eth_type */
	0x80, 0, 6 << 1, 2,   0, 0,                                            /*  86 vlan_vid: no tag */
	0x80, 0, 8 << 1, 1,   0,                                               /*  92 ip_dscp */
	0x80, 0, 10 << 1, 1,  0,                                               /*  97 ip_proto */
	0x80, 0, 11 << 1, 4,  0, 0, 0, 0,                                      /* 102 ipv4_src */
	0x80, 0, 12 << 1, 4,  0, 0, 0, 0,                                      /* 110 ipv4_dst */
};

/* The end of a flow mod for protocols with ports. */
TEMPLATE OF13_TAIL_PORTS[42] = {
	0x80, 0, 0, 2,  0, 0,                                                  /*   0 tcp_src or udp_src */
	0x80, 0, 0, 2,  0, 0,                                                  /*   6 tcp_dst or udp_dst */
	0, 0, 0, 0, 0, 0,                                                      /*  12 pad of the match */
	0, 4,  0, 24,  0, 0, 0, 0,                                             /*  18 apply-actions */
	0, 0,  0, 16,  0, 0, 0, 0,  0, 0,  0, 0, 0, 0, 0, 0,                   /*  26 output: port, max_len */
};

/* The end of a flow mod for ICMP. */
TEMPLATE OF13_TAIL_ICMP[34] = {
	0x80, 0, 19 << 1, 1,  0,                                               /*   0 icmpv4_type */
	0x80, 0, 20 << 1, 1,  0,                                               /*   5 icmpv4_code */
	0, 4,  0, 24,  0, 0, 0, 0,                                             /*  10 apply-actions */
	0, 0,  0, 16,  0, 0, 0, 0,  0, 0,  0, 0, 0, 0, 0, 0,                   /*  18 output: port, max_len */
};

/* The end of a flow mod without fields above IP. */
TEMPLATE OF13_TAIL[26] = {
	0, 0,                                                                  /*   0 pad of the match */
	0, 4,  0, 24,  0, 0, 0, 0,                                             /*   2 apply-actions */
	0, 0,  0, 16,  0, 0, 0, 0,  0, 0,  0, 0, 0, 0, 0, 0,                   /*  10 output: port, max_len */
};

/* Writes a delete of the entries that forward to the host `mac`. */
INLINE u32 write_delete(u8 *to, u32 version, u32 xid, const u8 *mac)
{
	if (version == OF10) {
		copy_bytes(to, OF10_DELETE, sizeof(OF10_DELETE));
		copy6(to + 20, mac);
		put32(to + 4, xid);
		return sizeof(OF10_DELETE);
	}
	copy_bytes(to, OF13_DELETE, sizeof(OF13_DELETE));
	copy6(to + 56, mac);
	put32(to + 4, xid);
	return sizeof(OF13_DELETE);
}

INLINE u32 write_flow_mod_of10(u8 *to, u32 xid, const struct packet_in *packet, const u8 *frame, enum upper upper, u32 port)
{
	copy_bytes(to, OF10_FLOW_MOD, sizeof(OF10_FLOW_MOD));
	put32(to + 4, xid);
	put16(to + 12, packet->in_port);
	copy6(to + 14, frame + 6);
	copy6(to + 20, frame);
	to[32] = frame[15] & 0xfc;
	to[33] = frame[23];
	copy4(to + 36, frame + 26);
	copy4(to + 40, frame + 30);
	if (upper != UPPER_NOTHING)
		to[11] = 0;
	if (upper == UPPER_PORTS)
		copy4(to + 44, frame + 34);
	if (upper == UPPER_ICMP) {
		to[45] = frame[34];
		to[47] = frame[35];
	}
	put32(to + 64, packet->buffer_id);
	put16(to + 76, port);
	return sizeof(OF10_FLOW_MOD);
}

INLINE u32 write_flow_mod_of13(u8 *to, u32 xid, const struct packet_in *packet, const u8 *frame, enum upper upper, u32 port)
{
	u8 *tail = to + sizeof(OF13_HEAD);
	u8 source = frame[23] == IPPROTO_TCP ? 13 : 15;  /* tcp_src, udp_src; each is followed by its destination */

	copy_bytes(to, OF13_HEAD, sizeof(OF13_HEAD));
	put32(to + 4, xid);
	put32(to + 32, packet->buffer_id);
	put32(to + 56, packet->in_port);
	copy6(to + 64, frame);
	copy6(to + 74, frame + 6);
	to[96] = frame[15] >> 2;
	to[101] = frame[23];
	copy4(to + 106, frame + 26);
	copy4(to + 114, frame + 30);
	if (upper == UPPER_PORTS) {
		put16(to + 2, 160);
		put16(to + 50, 82);
		copy_bytes(tail, OF13_TAIL_PORTS, sizeof(OF13_TAIL_PORTS));
		tail[2] = source << 1;
		copy2(tail + 4, frame + 34);
		tail[8] = (source + 1) << 1;
		copy2(tail + 10, frame + 36);
		put32(tail + 30, port);
		return sizeof(OF13_HEAD) + sizeof(OF13_TAIL_PORTS);
	}
	if (upper == UPPER_ICMP) {
		put16(to + 2, 152);
		put16(to + 50, 80);
		copy_bytes(tail, OF13_TAIL_ICMP, sizeof(OF13_TAIL_ICMP));
		tail[4] = frame[34];
		tail[9] = frame[35];
		put32(tail + 22, port);
		return sizeof(OF13_HEAD) + sizeof(OF13_TAIL_ICMP);
	}
	put16(to + 2, 144);
	put16(to + 50, 70);
	copy_bytes(tail, OF13_TAIL, sizeof(OF13_TAIL));
	put32(tail + 14, port);
	return sizeof(OF13_HEAD) + sizeof(OF13_TAIL);
}

/* Writes an entry for packets like this one. */
INLINE u32 write_flow_mod(u8 *to, u32 version, u32 xid, const struct packet_in *packet, const u8 *frame, enum upper upper,
			  u32 port)
{
	if (version == OF10)
		return write_flow_mod_of10(to, xid, packet, frame, upper, port);
	return write_flow_mod_of13(to, xid, packet, frame, upper, port);
}
