/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* The data of the router in the kernel: facts that the program has stored (L3Fact of apps/src/l3/kernel.rs).
 * src/l3_tables.rs is its counterpart in Rust, and fills the tables while the program is the owner.
 *
 * Each table consists of buckets of four slots. The program answers for keys that do not fit. All facts are forgotten
 * together: permanently by a new generation, while the program is the owner, or temporarily by `is_stale`, which any thread
 * may set. */
#pragma once

#include "bytes.h"

/* Number of slots of each table; powers of two. */
#define MAX_HOSTS 2048
#define MAX_NEXT_HOPS 4096
#define MAX_FLOWS 4096

#define PLACES_IN_BUCKET 4

/* Flags above the 48 bits of a MAC address: a gateway's address, and a host that was heard since the program's last check. */
#define MAC_IS_GATEWAY (1ULL << 62)
#define MAC_IS_HEARD (1ULL << 63)

struct host {
	u64 mac;
	u32 port;
	u32 generation;
};

enum next_hop_kind {
	HOP_ROUTED,     /* the next hop is a router at the port */
	HOP_OWNER,      /* the host at the port has the address */
	HOP_GATEWAY,    /* it is a gateway's own address */
};

struct next_hop {
	u64 dst;        /* the host's or gateway's MAC address */
	u64 src;        /* the gateway's, from which packets leave */
	u32 address;
	u32 port;
	u32 kind;
	u32 generation;
};

struct flow {
	u64 src;
	u64 gateway;
	u32 dst;
	u32 generation;
};

struct application {
	u32 is_stale;
	u32 generation;      /* of valid facts; never 0 */
	u32 xid;             /* of all packet-outs */
	u32 heard_count;
	u32 padding[12];
	struct host hosts[MAX_HOSTS];
	struct next_hop next_hops[MAX_NEXT_HOPS];
	struct flow flows[MAX_FLOWS];
	u32 heard[MAX_HOSTS];  /* the slots of hosts that were heard since the program's last check */
};

/* Returns the first slot of a key's bucket, before it is masked. */
INLINE u32 bucket_of(u64 key) { return (u32)(key * 0x9e3779b97f4a7c15ULL >> 32) * PLACES_IN_BUCKET; }

INLINE u64 flow_key(u64 src, u64 gateway, u32 dst) { return src << 16 ^ gateway ^ (u64)dst << 20; }

/* Returns the slot of a gateway's or a host's MAC address; NULL if it is unknown. */
static __noinline struct host *find_host(struct application *tables, u64 mac)
{
	u32 first = bucket_of(mac);

	for (u32 i = 0; i < PLACES_IN_BUCKET; i++) {
		struct host *host = &tables->hosts[(first + i) & (MAX_HOSTS - 1)];

		if ((host->mac & ~MAC_IS_HEARD) == mac && host->generation == tables->generation)
			return host;
	}
	return NULL;
}

/* Returns the next hop of an address; NULL if it is unknown. */
static __noinline struct next_hop *find_next_hop(struct application *tables, u32 address)
{
	u32 first = bucket_of(address);

	for (u32 i = 0; i < PLACES_IN_BUCKET; i++) {
		struct next_hop *hop = &tables->next_hops[(first + i) & (MAX_NEXT_HOPS - 1)];

		if (hop->address == address && hop->generation == tables->generation)
			return hop;
	}
	return NULL;
}

/* Returns whether the entries of a flow were sent to the switch. */
static __noinline int has_flow(struct application *tables, u64 src, u64 gateway, u32 dst)
{
	u32 first = bucket_of(flow_key(src, gateway, dst));

	for (u32 i = 0; i < PLACES_IN_BUCKET; i++) {
		struct flow *flow = &tables->flows[(first + i) & (MAX_FLOWS - 1)];

		if (flow->src == src && flow->gateway == gateway && flow->dst == dst && flow->generation == tables->generation)
			return 1;
	}
	return 0;
}

/* Notes that a host was heard. The program reads this later. */
INLINE void note_heard(struct application *tables, struct host *host)
{
	if (host->mac & MAC_IS_HEARD)
		return;
	host->mac |= MAC_IS_HEARD;
	tables->heard[tables->heard_count & (MAX_HOSTS - 1)] = host - tables->hosts;
	tables->heard_count++;
}
