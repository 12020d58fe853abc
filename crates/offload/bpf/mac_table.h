/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* The port of each host: the table of apps/src/mac_table.rs, entry by entry and decision by decision. In contrast, it has
 * its full size from the start, and the program alone answers when it is crowded. That file explains how it works and why. */
#pragma once

#include "bytes.h"

/* Maximum number of slots of a table of hosts; a power of two. */
#define MAX_PLACES 8192

/* Number of token buckets for flooded packets; a power of two. Ports with equal remainders share one. */
#define FLOOD_BUDGETS 256

/* A slot in the table of hosts: `Entry` of mac_table.rs. */
struct place {
	u64 mac;
	u32 port;
	u32 seen;
};

/* src/places.rs is its counterpart in Rust. */
struct application {
	u32 max_age_s;
	u32 place_mask;      /* the number of slots less one */
	u32 places_taken;
	u32 max_taken;       /* with more slots used, the program answers */
	u64 full_until_ns;     /* until this time, no entries are added: the switch's table is full */
	u64 flood_interval_ns; /* a port may flood one packet to an unknown host per interval; 0 without a limit */
	u64 flood_burst_ns;    /* the interval times the burst */
	u64 floods_dropped;
	u32 padding[4];
	struct place places[MAX_PLACES];
	u64 flood_full_at_ns[FLOOD_BUDGETS]; /* the time at which each token bucket will be full */
};

#define BUCKET 4
#define PROBES 3
#define NO_MAC (~0ULL)
#define LOOKED_UP (1U << 31)
#define NEIGHBOURS 0x3fULL
#define MULTICAST (1ULL << 40)

enum learned {
	LEARNED_SAME,  /* new, known or invalid: no consequences */
	LEARNED_MOVED,
};

struct search {
	enum { FOUND, FREE, FULL } what;
	u32 place;
	u32 others_looked_up;
};

INLINE u64 spread(u64 hash) { return hash * 0x9e3779b97f4a7c15ULL >> 40; }

INLINE u64 first_place(u64 mac)
{
	u64 neighbourhood = spread(mac & ~(NEIGHBOURS | NEIGHBOURS << 32));

	return neighbourhood ^ ((mac ^ mac >> 32) & NEIGHBOURS);
}

INLINE u64 next_place(u64 mac, u64 place)
{
	u64 elsewhere = spread(place >> 6 ^ 0x5bd1e995ULL) & ~NEIGHBOURS;

	return elsewhere | ((mac ^ mac >> 32) & NEIGHBOURS);
}

INLINE struct place *place_at(struct application *table, u64 place)
{
	return &table->places[place & (MAX_PLACES - 1)];
}

/* Checks all slots in which an address may be. */
static __noinline int search(struct application *table, u64 mac, struct search *result)
{
	u64 wish = first_place(mac);
	u32 victim_seen = ~0U;

	result->what = FULL;
	result->place = 0;
	result->others_looked_up = 0;
	for (int probe = 0; probe < PROBES; probe++) {
		u64 at = wish & table->place_mask;
		u64 start = at & ~(u64)(BUCKET - 1);
		u32 free_at = BUCKET;

		for (u32 i = 0; i < BUCKET; i++) {
			struct place *place = place_at(table, start + i);

			if (place->mac == mac) {
				result->what = FOUND;
				result->place = start + i;
				return 0;
			}
			if (place->mac == NO_MAC && free_at == BUCKET)
				free_at = i;
		}
		if (free_at < BUCKET) {
			result->what = FREE;
			result->place = place_at(table, at)->mac == NO_MAC ? at : start + free_at;
			return 0;
		}
		for (u32 i = 0; i < BUCKET; i++) {
			struct place *place = place_at(table, start + i);

			result->others_looked_up |= place->seen & LOOKED_UP;
			if (place->seen < victim_seen) {
				victim_seen = place->seen;
				result->place = start + i;
			}
		}
		wish = next_place(mac, wish);
	}
	return 0;
}

/* Requires addresses that may have been displaced to be looked up again before slots run short the next time. */
static __noinline int forget_looks(struct application *table, u64 mac)
{
	u64 wish = first_place(mac);

	for (int probe = 0; probe < PROBES; probe++) {
		u64 start = wish & table->place_mask & ~(u64)(BUCKET - 1);

		for (u32 i = 0; i < BUCKET; i++)
			place_at(table, start + i)->seen &= ~LOOKED_UP;
		wish = next_place(mac, wish);
	}
	return 0;
}

INLINE enum learned refresh(struct place *place, u32 port, u32 now_s)
{
	u32 before = place->port;

	if ((place->seen & ~LOOKED_UP) != now_s || before != port) {
		place->port = port;
		place->seen = now_s | (place->seen & LOOKED_UP);
	}
	return before == port ? LEARNED_SAME : LEARNED_MOVED;
}

/* Notes that `mac` is behind `port`. */
INLINE enum learned learn(struct application *table, u64 mac, u32 port, u32 now_s)
{
	struct place *place = place_at(table, first_place(mac) & table->place_mask);
	struct search result;

	if (place->mac == mac)
		return refresh(place, port, now_s);
	if (mac & MULTICAST || mac == 0)
		return LEARNED_SAME;
	search(table, mac, &result);
	place = place_at(table, result.place);
	if (result.what == FOUND)
		return refresh(place, port, now_s);
	if (result.what == FREE)
		table->places_taken++;
	else if (result.others_looked_up)
		forget_looks(table, mac);
	place->mac = mac;
	place->port = port;
	place->seen = now_s;
	return LEARNED_SAME;
}

/* Returns the port that `mac` is behind; 0 if it is unknown. */
INLINE int port_of(struct application *table, u64 mac, u32 now_s, u32 *port)
{
	struct place *place = place_at(table, first_place(mac) & table->place_mask);
	struct search result;

	if (place->mac != mac) {
		search(table, mac, &result);
		if (result.what != FOUND)
			return 0;
		place = place_at(table, result.place);
	}
	if (!(place->seen & LOOKED_UP))
		place->seen |= LOOKED_UP;
	*port = place->port;
	return (u64)now_s <= (u64)(place->seen & ~LOOKED_UP) + table->max_age_s;
}

/* Returns whether a packet from this port to an unknown host may be flooded. Like TokenBucket::take() of log/src/bucket.rs. */
INLINE int may_flood(struct application *table, u32 in_port)
{
	u64 *full_at = &table->flood_full_at_ns[in_port & (FLOOD_BUDGETS - 1)];
	u64 interval = table->flood_interval_ns, now, missing;

	if (interval == 0)
		return 1;
	now = bpf_ktime_get_ns();
	missing = *full_at > now ? *full_at - now : 0;
	if (missing + interval > table->flood_burst_ns) {
		table->floods_dropped++;
		return 0;
	}
	*full_at = now + missing + interval;
	return 1;
}

/* Returns whether entries may be added. Like FullTable::has_space() of apps/src/full_table.rs. */
INLINE int may_add(struct application *table)
{
	return table->full_until_ns == 0 || bpf_ktime_get_ns() >= table->full_until_ns;
}
