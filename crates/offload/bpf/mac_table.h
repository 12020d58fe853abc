/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* Which port each host is behind: the table of apps/src/mac_table.rs, entry by entry and decision by decision, except that
 * it has its full size from the beginning. That file says how it works and why. */
#pragma once

#include "session.h"

#define BUCKET 4
#define PROBES 3
#define NO_MAC (~0ULL)
#define LOOKED_UP (1U << 31)
#define NEIGHBOURS 0x3fULL
#define MULTICAST (1ULL << 40)

enum learned {
	LEARNED_SAME,  /* new, known or nobody's: nothing follows from it */
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

INLINE struct place *place_at(struct session *session, u64 place)
{
	return &session->places[place & (MAX_PLACES - 1)];
}

/* Looks at all places that an address may have. */
static __noinline int search(struct session *session, u64 mac, struct search *result)
{
	u64 wish = first_place(mac);
	u32 victim_seen = ~0U;

	result->what = FULL;
	result->place = 0;
	result->others_looked_up = 0;
	for (int probe = 0; probe < PROBES; probe++) {
		u64 at = wish & session->place_mask;
		u64 start = at & ~(u64)(BUCKET - 1);
		u32 free_at = BUCKET;

		for (u32 i = 0; i < BUCKET; i++) {
			struct place *place = place_at(session, start + i);

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
			result->place = place_at(session, at)->mac == NO_MAC ? at : start + free_at;
			return 0;
		}
		for (u32 i = 0; i < BUCKET; i++) {
			struct place *place = place_at(session, start + i);

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

/* All that an address might have displaced must be looked up again before places are short the next time. */
static __noinline int forget_looks(struct session *session, u64 mac)
{
	u64 wish = first_place(mac);

	for (int probe = 0; probe < PROBES; probe++) {
		u64 start = wish & session->place_mask & ~(u64)(BUCKET - 1);

		for (u32 i = 0; i < BUCKET; i++)
			place_at(session, start + i)->seen &= ~LOOKED_UP;
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
INLINE enum learned learn(struct session *session, u64 mac, u32 port, u32 now_s)
{
	struct place *place = place_at(session, first_place(mac) & session->place_mask);
	struct search result;

	if (place->mac == mac)
		return refresh(place, port, now_s);
	if (mac & MULTICAST || mac == 0)
		return LEARNED_SAME;
	search(session, mac, &result);
	place = place_at(session, result.place);
	if (result.what == FOUND)
		return refresh(place, port, now_s);
	if (result.what == FREE)
		session->places_taken++;
	else if (result.others_looked_up)
		forget_looks(session, mac);
	place->mac = mac;
	place->port = port;
	place->seen = now_s;
	return LEARNED_SAME;
}

/* The port that `mac` is behind. Returns 0 where that is not known. */
INLINE int port_of(struct session *session, u64 mac, u32 now_s, u32 *port)
{
	struct place *place = place_at(session, first_place(mac) & session->place_mask);
	struct search result;

	if (place->mac != mac) {
		search(session, mac, &result);
		if (result.what != FOUND)
			return 0;
		place = place_at(session, result.place);
	}
	if (!(place->seen & LOOKED_UP))
		place->seen |= LOOKED_UP;
	*port = place->port;
	return (u64)now_s <= (u64)(place->seen & ~LOOKED_UP) + session->max_age_s;
}
