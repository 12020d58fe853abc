/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* What the kernel and the program share of one switch's connection. src/session.rs has the same in Rust.
 *
 * The owner alone may touch the rest: see owner.h. Before this file an application defines `struct application`, its own part.
 * Up to the end of `input` this is the same in all versions, since a program may find what an earlier one left; what changes
 * behind it changes LAYOUT in src/session.rs.
 */
#pragma once

#include "owner.h"

/* No longer message is kept while only its beginning is there. */
#define CARRY_BYTES 2048

/* Longer input is the program's in any case: it comes in such pieces when queues are long, and batches are faster there. The
 * program may set a lower limit (`max_input_bytes`). */
#define INPUT_BYTES 16384

/* Room for the input and what was carried before it; a power of two. */
#define INPUT_ROOM 32768

/* Room for replies on their way; a power of two. */
#define REPLY_ROOM 65536

/* Nothing that is read or written as a whole at any place of a buffer is longer. */
#define SLACK (CARRY_BYTES + 256)

/* The program's sender in an xid: that of the first program. */
#define XID_SENDER (1U << 24)
#define XID_COUNTER 0xffffffU

struct session {
	u64 owner;

	/* Set by the program before it first hands over. */
	u32 slot;
	u32 version;         /* the wire version */
	u64 clock_ns;        /* the kernel's monotonic clock when the program's clock was 0 */
	u32 max_input_bytes; /* longer input is passed */

	/* The owner reads and writes these. */
	u32 xid;             /* the last one used, without its sender */
	u32 carried;         /* so many bytes of a message that is not whole are at the front of `input` */
	u32 is_fresh;        /* the kernel has answered nothing since it became the owner */
	u32 is_retired;      /* the program's: something came that only it can ever answer rightly, and it stays the owner */

	/* The kernel's alone. */
	u32 write_seq;       /* where the socket's output stood at the hand-over */
	u32 unwritten_base;  /* low bits of `reply_bytes` at that time */

	/* Where replies that have not left `replies` begin (low 32 bits) and end. */
	u64 span;

	/* What was done, since the beginning. The kernel adds, the program reads. */
	u64 reply_bytes;
	u64 replies_sent;
	u64 answered;        /* packet-ins */
	u64 taken_bytes;     /* of input that was not passed */
	u64 passed_other;    /* input passed since it held something else than packet-ins of the kind that is answered here */
	u64 passed_long;     /* input passed since it was long: the queue is */
	u64 passed_full;     /* input passed since the switch does not read its replies as fast */

	/* What the program after this one has to know. The kernel touches none of it. */
	u64 is_attached;
	u64 written;         /* so many bytes the programs have written at least */
	u64 unpassed;        /* so many bytes of input have come without being passed, up to the last change-over */
	u64 counted[5];      /* how much of `answered`, `replies_sent`, `reply_bytes` and the passed is in the program's counters */

	/* The last quarter is the program's, which stores beginnings of messages there for the program after it. */
	u8 input[INPUT_ROOM + SLACK];
	u8 replies[REPLY_ROOM + SLACK];
	u64 senders;         /* how many calls of to_switch() are at work */
	struct application application __attribute__((aligned(64)));
};
