/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* The sessions of all connections, and the search for the session of a socket. An object has sessions of one kind, `struct
 * session`, which must be defined before this file is included. */
#pragma once

#include "bytes.h"

#define MAX_SESSIONS 4096

/* The slot of a socket, by its cookie. A connection has at most two sockets. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2 * MAX_SESSIONS);
	__type(key, u64);
	__type(value, u32);
} slots SEC(".maps");

/* Each slot's session is a map of one element, which the program has mapped into its memory. */
struct session_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct session));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, MAX_SESSIONS);
	__type(key, u32);
	__array(values, struct session_map);
} sessions SEC(".maps");

/* The switches' sockets. Their input passes through the object's program. */
struct {
	__uint(type, BPF_MAP_TYPE_SOCKMAP);
	__uint(max_entries, MAX_SESSIONS);
	__type(key, u32);
	__type(value, u64);
} switches SEC(".maps");

INLINE struct session *session_of(struct __sk_buff *skb)
{
	u64 cookie = bpf_get_socket_cookie(skb);
	u32 *slot = bpf_map_lookup_elem(&slots, &cookie);
	u32 only = 0;
	void *map;

	if (!slot)
		return NULL;
	map = bpf_map_lookup_elem(&sessions, slot);
	return map ? bpf_map_lookup_elem(map, &only) : NULL;
}

/* Returns whether this is the end of the stream, without bytes. A program must drop it; the socket reports the end in any
 * case. If it were passed behind other input, the kernel would treat it as a failure to pass: the next write would fail with
 * EPIPE, and later replies would be dropped. */
INLINE int is_end_of_stream(struct __sk_buff *skb) { return skb->len == 0; }
