/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* What the kernel and the program share of one switch's connection in ring mode, and what is in a ring. src/ring/session.rs
 * and src/ring/queue.rs have the same in Rust.
 */
#pragma once

#include "owner.h"

/* No longer beginning of a message is kept while the rest is not there. */
#define RING_CARRY_BYTES 16384

/* Longer input is passed: it comes in such pieces when queues are long, and large reads are faster there. */
#define RING_INPUT_BYTES 16384

/* Room for the input and what was carried before it; a power of two. */
#define RING_INPUT_ROOM 32768

/* Nothing that is read as a whole at any place of the input is longer. */
#define RING_SLACK 64

/* Input with more messages is passed. */
#define MAX_RECORDS 512

/* One message of an entry. */
struct record {
	u32 at;              /* where it begins, from the first message of the entry on */
	u16 bytes;
	u8 type;
	u8 reserved;
	u32 xid;
	/* Of a packet-in. */
	u32 buffer_id;
	u32 in_port;
	u32 frame_at;        /* where the packet begins, from the message's beginning on */
	u32 frame_bytes;
	u32 padding;
};

/* An entry of a ring: this, then the records, then the messages, all whole. One without messages says that the connection's
 * input is passed to the program from here on. */
struct entry {
	u64 connection;
	u32 records;         /* none where the program asked for none */
	u32 bytes;           /* of the messages */
};

struct session {
	u64 owner;

	/* Set by the program before it first hands over. */
	u64 connection;      /* its number, which no other connection has or had */
	u32 ring;
	u32 version;         /* the wire version */
	u32 wants_records;

	/* The program's. */
	u32 is_wanted;       /* the program wants to read by itself: what comes next is passed */
	u64 types;           /* bit N: messages of type N go to the ring */

	/* The owner reads and writes this. */
	u32 carried;         /* so many bytes of a message that is not whole are at the front of `input` */
	u32 padding;

	/* What was done, since the beginning. The kernel adds, the program reads. */
	u64 delivered;       /* bytes of messages that were put into the ring */
	u64 passed_other;    /* input passed since it held something else than whole messages of these types, or the program wanted it */
	u64 passed_long;     /* input passed since it was long: the queue is */
	u64 passed_full;     /* input passed since the ring was full */

	struct record records[MAX_RECORDS];
	u8 input[RING_INPUT_ROOM + RING_SLACK];
};
