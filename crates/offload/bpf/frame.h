/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* The frame of a packet-in, and the requests in it, ARP (RFC 826) and neighbour discovery (RFC 4861), as
 * services/src/hosts/frame.rs parses them. Frames that it refuses, and rare ones, are not parsed here. */
#pragma once

#include "packet_in.h"
#include "service_tables.h"

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_ARP 0x0806
#define ETHERTYPE_VLAN 0x8100
#define ETHERTYPE_IPV6 0x86dd
#define ETHERTYPE_LLDP 0x88cc
#define VLAN_BYTES 4

#define ARP_BYTES 28
#define ARP_REQUEST 1
#define ARP_REPLY 2

#define IPV6_BYTES 40
#define ND_HOP_LIMIT 255
#define NEIGHBOR_SOLICITATION 135
#define NEIGHBOR_ADVERTISEMENT 136
#define SOLICITATION_BYTES 24
#define LINK_LAYER_BYTES 8
#define SOURCE_LINK_LAYER 1
#define TARGET_LINK_LAYER 2

#define MAC_GROUP (1ULL << 40)

struct frame {
	const u8 *at;
	u32 bytes;
	u32 payload_at;
	u32 type;        /* the EtherType, after a tag */
	u32 vlan;        /* 0 if there is none */
	u64 dst, src;
};

INLINE void read_frame(const u8 *at, u32 bytes, struct frame *frame)
{
	frame->at = at;
	frame->bytes = bytes;
	frame->payload_at = ETH_BYTES;
	frame->type = get16(at + 12);
	frame->vlan = 0;
	frame->dst = get_mac(at);
	frame->src = get_mac(at + 6);
	if (frame->type == ETHERTYPE_VLAN && bytes >= ETH_BYTES + VLAN_BYTES) {
		frame->vlan = get16(at + 14) & 0xfff;
		frame->type = get16(at + 16);
		frame->payload_at += VLAN_BYTES;
	}
}

/* A request for `target`. In an ARP reply, `sender` confirms its presence instead. */
struct neighbour {
	struct address_key target;
	struct address_key sender;
	u32 has_sender;
	u32 is_reply;
};

INLINE void set_ipv4(struct address_key *key, const u8 *address, u32 vlan)
{
	__builtin_memset(key, 0, sizeof(*key));
	copy4(key->address, address);
	key->vlan = vlan;
	key->family = FAMILY_IPV4;
}

INLINE void set_ipv6(struct address_key *key, const u8 *address, u32 vlan)
{
	copy_bytes(key->address, address, 16);
	key->vlan = vlan;
	key->family = FAMILY_IPV6;
	key->zero = 0;
}

/* Returns whether this can be a host's address: not multicast, loopback, broadcast or unspecified. */
INLINE int is_host_ipv4(u32 address)
{
	return address != 0 && address >> 28 != 0xe && address >> 24 != 127 && address != 0xffffffff;
}

INLINE int is_unspecified_ipv6(const u8 *address) { return !(get64(address) | get64(address + 8)); }

INLINE int is_host_ipv6(const u8 *address)
{
	return address[0] != 0xff && (get64(address) || get64(address + 8) > 1);
}

INLINE int read_arp(const struct frame *frame, struct neighbour *neighbour)
{
	const u8 *arp = frame->at + frame->payload_at;
	u32 op, spa;

	if (frame->bytes < frame->payload_at + ARP_BYTES)
		return 0;
	/* IPv4 over Ethernet. */
	if (get32(arp) != 0x00010800 || get16(arp + 4) != 0x0604 || get_mac(arp + 8) != frame->src)
		return 0;
	op = get16(arp + 6);
	spa = get32(arp + 14);
	if ((op != ARP_REQUEST && op != ARP_REPLY) || (spa && !is_host_ipv4(spa)))
		return 0;
	neighbour->is_reply = op == ARP_REPLY;
	neighbour->has_sender = spa != 0;
	set_ipv4(&neighbour->sender, arp + 14, frame->vlan);
	set_ipv4(&neighbour->target, arp + 24, frame->vlan);
	return 1;
}

/* Returns the sum of a constant, even number of bytes as 16-bit words. */
INLINE u32 sum_of(const u8 *at, u32 bytes)
{
	u32 sum = 0;

#pragma unroll
	for (u32 i = 0; i < bytes; i += 2)
		sum += get16(at + i);
	return sum;
}

/* Folds the sum into 16 bits (RFC 1071). */
INLINE u16 folded(u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* Returns whether this is the solicited-node address of `target` (RFC 4291 section 2.7.1). */
INLINE int is_solicited_node(const u8 *address, const u8 *target)
{
	return get64(address) == 0xff02000000000000ULL && get32(address + 8) == 1 && address[12] == 0xff &&
	       address[13] == target[13] && get16(address + 14) == get16(target + 14);
}

/* Reads a solicitation without options, or with only the sender's MAC address. */
INLINE int read_solicitation(const struct frame *frame, struct neighbour *neighbour)
{
	const u8 *ip = frame->at + frame->payload_at, *icmp = ip + IPV6_BYTES;
	u32 bytes, sum;

	if (frame->bytes < frame->payload_at + IPV6_BYTES + SOLICITATION_BYTES)
		return 0;
	bytes = get16(ip + 4);
	if (ip[0] >> 4 != 6 || ip[6] != IPPROTO_ICMPV6 || ip[7] != ND_HOP_LIMIT)
		return 0;
	if (bytes != SOLICITATION_BYTES && bytes != SOLICITATION_BYTES + LINK_LAYER_BYTES)
		return 0;
	if (frame->bytes < frame->payload_at + IPV6_BYTES + bytes || get16(icmp) != NEIGHBOR_SOLICITATION << 8)
		return 0;
	sum = sum_of(ip + 8, 32) + bytes + IPPROTO_ICMPV6 + sum_of(icmp, SOLICITATION_BYTES);
	neighbour->has_sender = !is_unspecified_ipv6(ip + 8);
	if (bytes != SOLICITATION_BYTES) {
		const u8 *option = icmp + SOLICITATION_BYTES;

		sum += sum_of(option, LINK_LAYER_BYTES);
		if (get16(option) != (SOURCE_LINK_LAYER << 8 | 1) || !neighbour->has_sender ||
		    get_mac(option + 2) != frame->src)
			return 0;
	}
	if (folded(sum) != 0xffff || icmp[8] == 0xff)
		return 0;
	if (neighbour->has_sender ? !is_host_ipv6(ip + 8) : !is_solicited_node(ip + 24, icmp + 8))
		return 0;
	neighbour->is_reply = 0;
	set_ipv6(&neighbour->sender, ip + 8, frame->vlan);
	set_ipv6(&neighbour->target, icmp + 8, frame->vlan);
	return 1;
}

/* ---- Answers: services/src/neighbour_proxy/answer.rs ---- */

/* Minimum length of frames without the frame check sequence. */
#define MIN_FRAME_BYTES 60

#define MAX_ANSWER_BYTES (ETH_BYTES + VLAN_BYTES + IPV6_BYTES + SOLICITATION_BYTES + LINK_LAYER_BYTES)

#define ND_ROUTER 0x80
#define ND_SOLICITED 0x40
#define ND_OVERRIDE 0x20

static const u8 ALL_NODES[16] = {0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
static const u8 ALL_NODES_MAC[6] = {0x33, 0x33, 0, 0, 0, 1};

/* Writes the Ethernet header, with the tag of the request. Returns its length. */
INLINE u32 write_ethernet(u8 *to, const u8 *dst, const u8 *src, const struct frame *request)
{
	copy6(to, dst);
	copy6(to + 6, src);
	if (request->payload_at != ETH_BYTES) {
		copy4(to + 12, request->at + 12);
		put16(to + 16, request->type);
		return ETH_BYTES + VLAN_BYTES;
	}
	put16(to + 12, request->type);
	return ETH_BYTES;
}

/* Writes the reply with which `mac` claims the target of a request. */
INLINE u32 write_arp_reply(u8 *to, const struct frame *request, const u8 *mac)
{
	const u8 *asked = request->at + request->payload_at;
	u8 *arp;

#pragma unroll
	for (u32 i = 0; i < MIN_FRAME_BYTES + 4; i += 8)
		*(u64 *)(to + i) = 0;
	arp = to + write_ethernet(to, request->at + 6, mac, request);
	put32(arp, 0x00010800);
	put16(arp + 4, 0x0604);
	put16(arp + 6, ARP_REPLY);
	copy6(arp + 8, mac);
	copy4(arp + 14, asked + 24);
	copy6(arp + 18, request->at + 6);
	copy4(arp + 24, asked + 14);
	return MIN_FRAME_BYTES;
}

/* Writes the reply to a solicitation. If that only checks whether the address is free, the reply is sent to all hosts. */
INLINE u32 write_advertisement(u8 *to, const struct frame *request, const u8 *mac, u32 is_router)
{
	const u8 *asked = request->at + request->payload_at, *target = asked + IPV6_BYTES + 8;
	u32 flags = ND_OVERRIDE | (is_router ? ND_ROUTER : 0);
	u8 *ip, *icmp;
	u32 bytes;

	if (is_unspecified_ipv6(asked + 8)) {
		bytes = write_ethernet(to, ALL_NODES_MAC, mac, request);
		ip = to + bytes;
		copy_bytes(ip + 24, ALL_NODES, 16);
	} else {
		bytes = write_ethernet(to, request->at + 6, mac, request);
		ip = to + bytes;
		copy_bytes(ip + 24, asked + 8, 16);
		flags |= ND_SOLICITED;
	}
	put32(ip, 0x60000000);
	put16(ip + 4, SOLICITATION_BYTES + LINK_LAYER_BYTES);
	ip[6] = IPPROTO_ICMPV6;
	ip[7] = ND_HOP_LIMIT;
	copy_bytes(ip + 8, target, 16);
	icmp = ip + IPV6_BYTES;
	put32(icmp, NEIGHBOR_ADVERTISEMENT << 24);
	put32(icmp + 4, flags << 24);
	copy_bytes(icmp + 8, target, 16);
	put16(icmp + 24, TARGET_LINK_LAYER << 8 | 1);
	copy6(icmp + 26, mac);
	put16(icmp + 2, ~folded(sum_of(ip + 8, 32) + SOLICITATION_BYTES + LINK_LAYER_BYTES + IPPROTO_ICMPV6 +
				sum_of(icmp, SOLICITATION_BYTES + LINK_LAYER_BYTES)));
	return bytes + IPV6_BYTES + SOLICITATION_BYTES + LINK_LAYER_BYTES;
}
