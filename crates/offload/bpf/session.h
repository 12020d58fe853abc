/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* State of one switch's connection that the kernel and the program share. src/session.rs is its counterpart in Rust.
 *
 * Only the owner may access the other fields: see owner.h. An application defines its own part, `struct application`, before
 * it includes this file. Up to the end of `input` this structure is identical in all versions, because a program may find a
 * session of an earlier one. A change behind that must change LAYOUT in src/session.rs. */
#pragma once

#include "owner.h"

/* Maximum length of the kept start of a message. */
#define CARRY_BYTES 2048

/* Longer input is always passed to the program. Input arrives in such pieces when queues are long, and batches are faster
 * then. The program may set a lower limit (`max_input_bytes`). */
#define INPUT_BYTES 16384

/* Space for the input and the kept start before it; a power of two. */
#define INPUT_ROOM 32768

/* Space for replies in transit; a power of two. */
#define REPLY_ROOM 65536

/* Maximum length of a part of a buffer that is read or written at once. */
#define SLACK (CARRY_BYTES + 256)

/* The program's sender in an xid, which is that of the first program. */
#define XID_SENDER (1U << 24)
#define XID_COUNTER 0xffffffU

struct session {
	u64 owner;

	/* Set by the program before it first hands over. */
	u32 slot;
	u32 version;         /* the wire version */
	u64 clock_ns;        /* the kernel's monotonic clock when the program's clock was 0 */
	u32 max_input_bytes; /* longer input is passed */

	/* Read and written by the owner. */
	u32 xid;             /* the last one used, without its sender */
	u32 carried;         /* number of bytes of an incomplete message at the front of `input` */
	u32 is_fresh;        /* the kernel has answered nothing since it became the owner */
	u32 is_retired;      /* the program's: a message arrived after which only it can answer correctly, and it stays the owner */

	/* Used by the kernel only. */
	u32 write_seq;       /* the position of the socket's output at the hand-over */
	u32 unwritten_base;  /* low bits of `reply_bytes` at that time */

	/* Start (low 32 bits) and end of the replies that have not left `replies`. */
	u64 span;

	/* Counts since the start. The kernel increases them, and the program reads them. */
	u64 reply_bytes;
	u64 replies_sent;
	u64 answered;        /* packet-ins */
	u64 taken_bytes;     /* of input that was not passed */
	u64 passed_other;    /* input passed since it contained other messages than packet-ins that are answered here */
	u64 passed_long;     /* input passed since it was long: the queue is */
	u64 passed_full;     /* input passed since the switch does not read its replies fast enough */

	/* State for the next program. The kernel does not access it. */
	u64 is_attached;
	u64 written;         /* minimum number of bytes that the programs have written */
	u64 unpassed;        /* number of bytes of input received without being passed, up to the last change-over */
	u64 counted[5];      /* the part of `answered`, `replies_sent`, `reply_bytes` and the passed counts that is in the program's counters */

	/* The last quarter is the program's, which stores starts of messages there for the next program. */
	u8 input[INPUT_ROOM + SLACK];
	u8 replies[REPLY_ROOM + SLACK];
	s64 senders;         /* how many calls of to_switch() are at work */
	struct application application __attribute__((aligned(64)));
};
