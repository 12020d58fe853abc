/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* What the services of the program know, as far as packets are settled by it: tables for all switches, which the program writes
 * (src/services/tables.rs), and each switch's part of its session (src/services/part.rs).
 *
 * The program changes tables at any time. So what is to be done with a message is decided once, when it is looked at, and kept as a
 * verdict until it is carried out.
 */
#pragma once

#include "bytes.h"

/* What the program sets otherwise: src/loaded.rs. What does not fit is the program's. */
#define MAX_HOSTS (1 << 17)
#define MAX_ADDRESSES (1 << 18)
#define MAX_PORTS (1 << 16)

/* Expected probes are not longer. */
#define MAX_PROBE_BYTES 128

/* More messages in a piece of input are the program's; a power of two. */
#define MAX_VERDICTS 512

/* Room for events; a power of two. */
#define EVENT_ROOM 65536

/* Longer packet-ins that say something new are the program's. */
#define MAX_EVENT_BYTES 256

/* As much is told of the first packet of a flow. */
#define FLOW_EVENT_BYTES 128

/* What is to be done with a message. */
enum what {
	SETTLED_ECHO_REQUEST,
	SETTLED_ECHO_REPLY,
	SETTLED_PROBE,     /* the one that was expected */
	SETTLED_HOST,      /* a known host has answered a probe of ours */
	SETTLED_ARP,       /* a request that is answered */
	SETTLED_ND,
	SETTLED_FLOW,      /* the first packet of a flow, which is sent on */
	SETTLED_AS_EVENT,  /* for the program to read, and nobody to answer */
};

struct verdict {
	u8 what;
	u8 is_event;  /* it says something new, and the program hears of it */
	u8 mac[6];    /* of the owner of the address that is asked for */
	u8 is_router; /* whether the owner is one */
	u8 padding[3];
	u32 port;     /* where the packet is sent on */
};

struct application {
	u64 datapath_id;   /* set by the program before it first hands over */

	/* What was done, since the beginning. The kernel adds, the program reads. */
	u64 others;        /* settled messages that are no packet-ins */
	u64 events_full;   /* input passed since the program had not read its events */

	/* The owner's. The program empties events and forgets verdicts when it becomes the owner. */
	u32 event_bytes;   /* of events that are there */
	u32 events_due;    /* of those that verdicts are to bring */
	u32 looked_at;     /* messages that have a verdict */
	u32 carried_out;   /* those of them that are dealt with */
	u64 padding[3];

	struct verdict verdicts[MAX_VERDICTS];
	u8 events[EVENT_ROOM + MAX_EVENT_BYTES];
};

struct settings {
	u64 our_mac;     /* from which hosts are probed; 0: from none */
	u32 answers_as;  /* the program on whose behalf requests are answered, as its xids have it; 0: they are not */
	u32 forwards_as; /* the same of first packets of flows */
};

struct counts {
	u64 probes;
	u64 requests;
};

/* A port of a switch. */
struct port_key {
	u64 datapath_id;
	u32 port;
	u32 zero;
};

/* A host, by its MAC address and its VLAN, 0 where it has none. */
struct host_key {
	u8 mac[6];
	u16 vlan;
};

#define FAMILY_IPV4 4
#define FAMILY_IPV6 6

struct address_key {
	u8 address[16];  /* an IPv4 address is at the front of zeros */
	u16 vlan;
	u16 family;
	u32 zero;
};

/* Whose an address is. */
struct address_owner {
	u8 mac[6];
	u8 is_router;
	u8 zero;
};

/* How many packets of a host were settled, and when the last was. */
struct heard {
	u64 count;
	u64 last_ns;
};

struct link_probe {
	u64 from_switch;
	u32 from_port;
	u32 frame_bytes;
	u64 stamp;
	u64 settled_ns;  /* of one that has come */
};

/* A probe that confirms a link if it comes in here. */
struct expected_probe {
	struct link_probe probe;
	u8 frame[MAX_PROBE_BYTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct settings);
} settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct counts);
} counts SEC(".maps");

/* Where hosts may be: no switch is known to be behind these ports. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_PORTS);
	__type(key, struct port_key);
	__type(value, u32);
} host_ports SEC(".maps");

/* Where each host is. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_HOSTS);
	__type(key, struct host_key);
	__type(value, struct port_key);
} hosts SEC(".maps");

/* Each host has an entry, which the program makes and deletes, and the kernel counts in. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_HOSTS);
	__type(key, struct host_key);
	__type(value, struct heard);
} heard SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_ADDRESSES);
	__type(key, struct address_key);
	__type(value, struct address_owner);
} addresses SEC(".maps");

/* By the port where they are expected. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_PORTS);
	__type(key, struct port_key);
	__type(value, struct expected_probe);
} expected SEC(".maps");

/* One switch, and another to which packets go from there. */
struct pair {
	u64 at;
	u64 to;
};

/* The port by which they leave, where all shortest paths have the same. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_PORTS);
	__type(key, struct pair);
	__type(value, u32);
} next_hops SEC(".maps");

/* The last that came, by port. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_PORTS);
	__type(key, struct port_key);
	__type(value, struct link_probe);
} confirmed SEC(".maps");
