/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* State of one switch's connection in ring mode that the kernel and the program share, and the contents of a ring.
 * src/ring/session.rs and src/ring/queue.rs are its counterparts in Rust. */
#pragma once

#include "owner.h"

/* Maximum length of the kept start of a message. */
#define RING_CARRY_BYTES 16384

/* Longer input is passed. Input arrives in such pieces when queues are long, and large reads are faster then. */
#define RING_INPUT_BYTES 16384

/* Space for the input and the kept start before it; a power of two. */
#define RING_INPUT_ROOM 32768

/* Maximum length of a part of the input that is read at once. */
#define RING_SLACK 64

/* Input with more messages is passed. */
#define MAX_RECORDS 512

/* One message of an entry. */
struct record {
	u32 at;              /* its start, relative to the first message of the entry */
	u16 bytes;
	u8 type;
	u8 reserved;
	u32 xid;
	/* Fields of a packet-in. */
	u32 buffer_id;
	u32 in_port;
	u32 frame_at;        /* offset of the packet in the message */
	u32 frame_bytes;
	u32 padding;
};

/* An entry of a ring: this structure, then the records, then the messages, all complete. An entry without messages reports
 * that the connection's input is passed to the program from here on. */
struct entry {
	u64 connection;
	u32 records;         /* 0 if the program has not requested them */
	u32 bytes;           /* of the messages */
};

struct session {
	u64 owner;

	/* Set by the program before it first hands over. */
	u64 connection;      /* its number, which no other connection has or had */
	u32 ring;
	u32 version;         /* the wire version */
	u32 wants_records;

	/* Written by the program. */
	u32 is_wanted;       /* the program wants to read the socket: further input is passed */
	u64 types;           /* bit N: messages of type N are put into the ring */

	/* Read and written by the owner. */
	u32 carried;         /* number of bytes of an incomplete message at the front of `input` */
	u32 padding;

	/* Counts since the start. The kernel increases them, and the program reads them. */
	u64 delivered;       /* bytes of messages that were put into the ring */
	u64 passed_other;    /* input passed since it contained other messages than whole ones of these types, or the program wanted it */
	u64 passed_long;     /* input passed since it was long: the queue is */
	u64 passed_full;     /* input passed since the ring was full */

	struct record records[MAX_RECORDS];
	u8 input[RING_INPUT_ROOM + RING_SLACK];
};
