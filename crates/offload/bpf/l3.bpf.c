// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT
/* The router `l3` in the kernel. It treats packets of known hosts like apps/src/l3.rs and its frames.rs, byte by byte.
 * Packets that the switches of a path forward from the second on (OpenFlow 1.3) are answered here once the program has sent
 * the path's entries. */
#include "l3.h"
#include "packet_out.h"
#include "answering.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define OFPP_CONTROLLER_OF10 0xfffd
#define OFPP_CONTROLLER_OF13 0xfffffffdU

#define BROADCAST 0xffffffffffffULL

#define ETH_ARP 0x0806
#define ETH_IPV4 0x0800
#define ARP_END (ETH_BYTES + 28)
#define IPV4_BYTES 20
#define IPV4_END (ETH_BYTES + IPV4_BYTES)

/* Shorter frames are padded with zeros. */
#define MIN_FRAME_BYTES 60

/* The fields of an ARP packet up to the sender: Ethernet, IPv4, lengths, operation. */
#define ARP_ETHERNET_IPV4 0x00010800
#define ARP_REQUEST 0x06040001
#define ARP_REPLY 0x06040002

/* The answer to a packet-in: one packet-out. */
struct reply {
	struct host *host;         /* the sender, which was heard */
	struct next_hop *hop;      /* the next hop of a packet; for a request, the gateway */
	u32 in_port;
	u32 data_at;               /* offset of the packet in the message */
	u32 ip_bytes;              /* 0 for a request */
};

INLINE void put_mac(u8 *at, u64 mac)
{
	put32(at, mac >> 16);
	put16(at + 4, mac);
}

/* Returns the sum of an IPv4 header without options, excluding its checksum, which must be the complement of the sum. */
INLINE u32 sum_header(const u8 *ip)
{
	u32 sum = 0;

#pragma unroll
	for (int at = 0; at < IPV4_BYTES; at += 2)
		if (at != 10)
			sum += get16(ip + at);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/* Reads a host's request for a gateway's address. The request's information on the host is known already. */
INLINE int read_question(struct application *tables, const u8 *frame, u32 bytes, struct reply *reply)
{
	u64 dst = get_mac(frame), src = get_mac(frame + 6);
	u32 spa = get32(frame + 28), tpa = get32(frame + 38);
	struct next_hop *sender;

	if (bytes < ARP_END || get32(frame + 14) != ARP_ETHERNET_IPV4 || get32(frame + 18) != ARP_REQUEST)
		return 0;
	if (get_mac(frame + 22) != src || (dst != BROADCAST && !find_host(tables, dst | MAC_IS_GATEWAY)))
		return 0;
	sender = find_next_hop(tables, spa);
	if (!sender || sender->kind != HOP_OWNER || sender->dst != src || sender->port != reply->in_port)
		return 0;
	reply->hop = find_next_hop(tables, tpa);
	reply->ip_bytes = 0;
	return reply->hop && reply->hop->kind == HOP_GATEWAY;
}

/* Reads a packet that a host sends to a gateway, complete and without options, to be forwarded out of a port of this switch. */
INLINE int read_packet(struct session *session, const u8 *frame, u32 bytes, struct reply *reply)
{
	struct application *tables = &session->application;
	const u8 *ip = frame + ETH_BYTES;
	u64 gateway = get_mac(frame), src = get_mac(frame + 6);
	u32 dst = get32(ip + 16), total = get16(ip + 2);

	if (bytes < IPV4_END || ip[0] != 0x45 || total < IPV4_BYTES || total > bytes - ETH_BYTES)
		return 0;
	/* The program handles packets with the reserved flag, which is not forwarded (RFC 791), and those whose time to live
	 * ends. */
	if (ip[6] & 0x80 || ip[8] <= 1 || (u16)~sum_header(ip) != get16(ip + 10))
		return 0;
	if (!find_host(tables, gateway | MAC_IS_GATEWAY))
		return 0;
	reply->hop = find_next_hop(tables, dst);
	reply->ip_bytes = total;
	if (!reply->hop || reply->hop->kind == HOP_GATEWAY)
		return 0;
	return session->version == OF10 || has_flow(tables, src, gateway, dst);
}

/* Returns 0 if a message is not answered here. */
INLINE int find_reply(struct session *session, const u8 *message, u32 bytes, struct reply *reply)
{
	struct application *tables = &session->application;
	struct packet_in packet;
	const u8 *frame;

	if (message[1] != OFPT_PACKET_IN || !read_packet_in(message, bytes, session->version, &packet))
		return 0;
	if (packet.data_bytes > CARRY_BYTES)
		return 0;
	frame = message + packet.data_at;
	reply->in_port = packet.in_port;
	reply->data_at = packet.data_at;
	reply->host = find_host(tables, get_mac(frame + 6));
	if (!reply->host || reply->host->port != packet.in_port)
		return 0;
	switch (get16(frame + 12)) {
	case ETH_ARP:
		return read_question(tables, frame, packet.data_bytes, reply);
	case ETH_IPV4:
		return read_packet(session, frame, packet.data_bytes, reply);
	default:
		return 0;
	}
}

INLINE u32 frame_bytes(const struct reply *reply)
{
	u32 bytes = ETH_BYTES + reply->ip_bytes;

	return bytes < MIN_FRAME_BYTES ? MIN_FRAME_BYTES : bytes;
}

INLINE s32 longest_reply(struct session *session, const u8 *message, u32 bytes)
{
	struct reply reply;

	/* Another thread may set this at any time; messages that were read before are still answered. */
	if (*(volatile u32 *)&session->application.is_stale || !find_reply(session, message, bytes, &reply))
		return -1;
	return MAX_PACKET_OUT_BYTES + frame_bytes(&reply);
}

/* Like arp_reply() of frames.rs. */
INLINE void write_arp_reply(u8 *to, const u8 *question, u64 gateway)
{
	copy6(to, question + 6);
	put_mac(to + 6, gateway);
	put16(to + 12, ETH_ARP);
	put32(to + 14, ARP_ETHERNET_IPV4);
	put32(to + 18, ARP_REPLY);
	put_mac(to + 22, gateway);
	copy4(to + 28, question + 38);
	copy6(to + 32, question + 22);
	copy4(to + 38, question + 28);
}

/* Like forwarded() of frames.rs. */
INLINE void write_forwarded(u8 *to, const u8 *frame, u32 ip_bytes, const struct next_hop *hop)
{
	u32 payload = ip_bytes - IPV4_BYTES;
	u8 *ip = to + ETH_BYTES;

	put_mac(to, hop->dst);
	put_mac(to + 6, hop->src);
	put16(to + 12, ETH_IPV4);
	copy_bytes(ip, frame + ETH_BYTES, IPV4_BYTES);
	ip[8]--;
	put16(ip + 10, ~sum_header(ip));
	if (payload > 0 && payload <= CARRY_BYTES)
		bpf_probe_read_kernel(ip + IPV4_BYTES, payload, frame + IPV4_END);
}

INLINE void answer_message(struct answer *answer, const u8 *message, u32 bytes)
{
	struct session *session = answer->session;
	struct application *tables = &session->application;
	struct packet_in from = {.buffer_id = OFP_NO_BUFFER};
	struct reply reply;
	u32 data_bytes, port;
	const u8 *frame;
	u8 *to;

	/* The facts that were read before are still valid. */
	if (!find_reply(session, message, bytes, &reply))
		return;
	note_heard(tables, reply.host);
	frame = message + reply.data_at;
	data_bytes = frame_bytes(&reply);
	port = reply.ip_bytes ? reply.hop->port : reply.in_port;
	from.in_port = session->version == OF10 ? OFPP_CONTROLLER_OF10 : OFPP_CONTROLLER_OF13;
	answer->to += write_packet_out(reply_at(session, answer->to), session->version, tables->xid, &from, port, data_bytes);
	answer->replies++;
	to = reply_at(session, answer->to);
#pragma unroll
	for (int at = 0; at < 64; at += 8)
		*(u64 *)(to + at) = 0;
	if (reply.ip_bytes)
		write_forwarded(to, frame, reply.ip_bytes, reply.hop);
	else
		write_arp_reply(to, frame, reply.hop->dst);
	answer->to += data_bytes;
}
