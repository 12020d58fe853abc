/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* Data of the program's services by which packets are settled: tables for all switches, which the program writes
 * (src/services/tables.rs), and each switch's part of its session (src/services/part.rs).
 *
 * The program changes tables at any time. So the treatment of a message is decided once, when it is read, and kept as a
 * verdict until it is carried out. */
#pragma once

#include "bytes.h"

/* Default sizes, which the program overrides in src/loaded.rs. The program handles items that do not fit. */
#define MAX_HOSTS (1 << 17)
#define MAX_ADDRESSES (1 << 18)
#define MAX_PORTS (1 << 16)

/* Maximum length of an expected probe. */
#define MAX_PROBE_BYTES 128

/* Maximum number of messages in a piece of input; further ones are passed. A power of two. */
#define MAX_VERDICTS 512

/* Space for events; a power of two. */
#define EVENT_ROOM 65536

/* Maximum length of a packet-in as an event. Longer ones with news are passed. */
#define MAX_EVENT_BYTES 256

/* Length of a flow's first packet in an event. */
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

	/* Counts since the start. The kernel increases them, and the program reads them. */
	u64 others;        /* settled messages that are no packet-ins */
	u64 events_full;   /* input passed since the program had not read its events */

	/* Used by the owner. The program empties events and forgets verdicts when it becomes the owner. */
	u32 event_bytes;   /* of present events */
	u32 events_due;    /* of events that verdicts will add */
	u32 looked_at;     /* messages that have a verdict */
	u32 carried_out;   /* those of them that are carried out */

	u64 counted_others; /* the program's, for the next one */
	u64 padding[2];

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

/* A host, by its MAC address and its VLAN; 0 for no VLAN. */
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

/* Number of a host's settled packets, and the time of the last. */
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

/* A probe that confirms a link if it arrives at this port. */
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

/* An entry per host, which the program creates and deletes, and in which the kernel counts. */
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

/* The expected probes, by the port where they should arrive. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_PORTS);
	__type(key, struct port_key);
	__type(value, struct expected_probe);
} expected SEC(".maps");

/* A switch, and another switch to which it sends packets. */
struct pair {
	u64 at;
	u64 to;
};

/* The port of the first link, if it is common to all shortest paths. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_PORTS);
	__type(key, struct pair);
	__type(value, u32);
} next_hops SEC(".maps");

/* The last probes that arrived, by port. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_PORTS);
	__type(key, struct port_key);
	__type(value, struct link_probe);
} confirmed SEC(".maps");
