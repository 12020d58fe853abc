/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* Data of the program's services by which packets are settled: tables for all switches, which the program writes
 * (src/services/tables.rs), and each switch's part of its session (src/services/part.rs).
 *
 * The program changes tables at any time. So the treatment of a message is decided once, when it is read, and kept as a
 * verdict until it is carried out.
 */
#pragma once

#include "bytes.h"

/* Defaults that the program overrides: src/loaded.rs. The program handles items that do not fit. */
#define MAX_HOSTS (1 << 17)
#define MAX_ADDRESSES (1 << 18)
#define MAX_PORTS (1 << 16)

/* Maximum length of expected probes. */
#define MAX_PROBE_BYTES 128

/* Maximum number of messages in a piece of input; further ones are passed. A power of two. */
#define MAX_VERDICTS 512

/* Space for events; a power of two. */
#define EVENT_ROOM 65536

/* Maximum length of packet-ins as events; longer ones with news are passed. */
#define MAX_EVENT_BYTES 256

/* Length of the first packet of a flow in an event. */
#define FLOW_EVENT_BYTES 128

/* The treatment of a message. */
enum what {
	SETTLED_ECHO_REQUEST,
	SETTLED_ECHO_REPLY,
	SETTLED_PROBE,     /* the expected one */
	SETTLED_HOST,      /* a known host has answered one of our probes */
	SETTLED_ARP,       /* a request that is answered */
	SETTLED_ND,
	SETTLED_FLOW,      /* the first packet of a flow, which is forwarded */
	SETTLED_AS_EVENT,  /* only read by the program, without an answer */
};

struct verdict {
	u8 what;
	u8 is_event;  /* it has news, and is passed to the program as an event */
	u8 mac[6];    /* of the owner of the requested address */
	u8 is_router; /* whether the owner is one */
	u8 padding[3];
	u32 port;     /* the port by which the packet is forwarded */
};

struct application {
	u64 datapath_id;   /* set by the program before it first hands over */

	/* Counts since the start. The kernel adds, the program reads. */
	u64 others;        /* settled messages that are no packet-ins */
	u64 events_full;   /* input passed since the program had not read its events */

	/* The owner's. The program empties events and forgets verdicts when it becomes the owner. */
	u32 event_bytes;   /* of present events */
	u32 events_due;    /* of events that verdicts will add */
	u32 looked_at;     /* messages that have a verdict */
	u32 carried_out;   /* those of them that are carried out */
	u64 padding[3];

	struct verdict verdicts[MAX_VERDICTS];
	u8 events[EVENT_ROOM + MAX_EVENT_BYTES];
};

struct settings {
	u64 our_mac;     /* from which hosts are probed; 0: from none */
	u32 answers_as;  /* the program on whose behalf requests are answered, as in its xids; 0: they are not */
	u32 forwards_as; /* the program on whose behalf first packets of flows are forwarded; 0: they are not */
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

/* A host, by its MAC address and its VLAN, 0 if it has none. */
struct host_key {
	u8 mac[6];
	u16 vlan;
};

#define FAMILY_IPV4 4
#define FAMILY_IPV6 6

struct address_key {
	u8 address[16];  /* an IPv4 address is followed by zeros */
	u16 vlan;
	u16 family;
	u32 zero;
};

/* The owner of an address. */
struct address_owner {
	u8 mac[6];
	u8 is_router;
	u8 zero;
};

/* Number of a host's packets that were settled, and time of the last. */
struct heard {
	u64 count;
	u64 last_ns;
};

struct link_probe {
	u64 from_switch;
	u32 from_port;
	u32 frame_bytes;
	u64 stamp;
	u64 settled_ns;  /* of one that has arrived */
};

/* A probe that confirms a link if it arrives here. */
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

/* Ports that may have hosts: no switch is known to be behind them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_PORTS);
	__type(key, struct port_key);
	__type(value, u32);
} host_ports SEC(".maps");

/* The location of each host. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_HOSTS);
	__type(key, struct host_key);
	__type(value, struct port_key);
} hosts SEC(".maps");

/* Each host has an entry, which the program creates and deletes, and the kernel counts in. */
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

/* By the expected port. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_PORTS);
	__type(key, struct port_key);
	__type(value, struct expected_probe);
} expected SEC(".maps");

/* One switch, and another to which packets are sent from there. */
struct pair {
	u64 at;
	u64 to;
};

/* The port by which they leave, if it is common to all shortest paths. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_PORTS);
	__type(key, struct pair);
	__type(value, u32);
} next_hops SEC(".maps");

/* The last ones that arrived, by port. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_PORTS);
	__type(key, struct port_key);
	__type(value, struct link_probe);
} confirmed SEC(".maps");
