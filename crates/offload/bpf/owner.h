/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* The owner of a connection's next input, which is the kernel or the program: the low two bits of a word that both share. Above
 * them is the number of bytes passed to the program, which can hand over only if it has seen all of them: one
 * compare-and-exchange decides. src/owner.rs is the program's side.
 *
 *                begin_turn()                    end_turn(0)
 *   KERNEL ───────────────────────► BUSY ─────────────────────────────► KERNEL
 *      │ ▲                            │ end_turn(bytes): they are passed
 *      │ └──── the program gives ── PROGRAM ◄──┘
 *      └────── the program takes ────►│
 */
#pragma once

#include "bytes.h"

enum owner {
	OWNER_PROGRAM,
	OWNER_KERNEL,
	OWNER_BUSY,
};

#define OWNER_MASK 3
#define PASSED_SHIFT 2

/* Tries to make the kernel the owner. Returns 0 if the program is the owner; the bytes then count as passed. */
INLINE int begin_turn(u64 *word, u32 bytes)
{
#pragma unroll
	for (int attempt = 0; attempt < 4; attempt++) {
		u64 owner = *(volatile u64 *)word;
		int is_kernels = (owner & OWNER_MASK) == OWNER_KERNEL;
		u64 next = is_kernels ? owner - OWNER_KERNEL + OWNER_BUSY : owner + ((u64)bytes << PASSED_SHIFT);

		if (__sync_val_compare_and_swap(word, owner, next) == owner)
			return is_kernels;
	}
	/* Not reached: the program makes system calls between two changes of the owner, and becomes the owner when it sees the
	 * bytes. */
	__sync_fetch_and_add(word, (u64)bytes << PASSED_SHIFT);
	return 0;
}

/* Ends the kernel's work. The program becomes the owner if bytes are passed to it. */
INLINE void end_turn(u64 *word, u32 passed_bytes)
{
	u64 begun = *(volatile u64 *)word;
	u64 next = begun - OWNER_BUSY;

	next += passed_bytes ? (u64)passed_bytes << PASSED_SHIFT | OWNER_PROGRAM : OWNER_KERNEL;
	__sync_val_compare_and_swap(word, begun, next);
}
