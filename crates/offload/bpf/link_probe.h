/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* The frames with which the program finds links: services/src/discovery/probe.rs. */
#pragma once

#include "frame.h"

#define PROBE_DIGITS_AT 41
#define MAX_PROBE_DIGITS 9
#define PROBE_TAIL_BYTES 36

/* Returns whether a frame equals the expected one, to the last byte. */
INLINE int is_expected(const u8 *frame, u32 bytes, const struct expected_probe *expected)
{
	if (bytes != expected->probe.frame_bytes || bytes > MAX_PROBE_BYTES)
		return 0;
	for (u32 i = 0; i < MAX_PROBE_BYTES / 8; i++) {
		u32 left = bytes - i * 8;

		if (i * 8 >= bytes)
			break;
		if (left >= 8) {
			if (*(const u64 *)(frame + i * 8) != *(const u64 *)(expected->frame + i * 8))
				return 0;
			continue;
		}
		for (u32 j = 0; j < 7; j++)
			if (j < left && frame[i * 8 + j] != expected->frame[i * 8 + j])
				return 0;
	}
	return 1;
}

INLINE int is_digit(u8 byte) { return byte >= '0' && byte <= '9'; }
INLINE int is_hex_digit(u8 byte) { return is_digit(byte) || (byte >= 'a' && byte <= 'f'); }

/* Returns whether a frame has the form of our probes. The program checks its authenticator. */
INLINE int is_probe(const u8 *frame, u32 bytes)
{
	const u8 *tail;
	u32 digits;

	if (bytes < PROBE_DIGITS_AT + 1 + PROBE_TAIL_BYTES)
		return 0;
	/* Chassis id, locally assigned: "dpid:" and 16 hexadecimal digits. */
	if (get32(frame + 14) != 0x02160764 || get32(frame + 18) != 0x7069643a)
		return 0;
	for (u32 i = 0; i < 16; i++)
		if (!is_hex_digit(frame[22 + i]))
			return 0;
	/* Port id, locally assigned: decimal digits. */
	digits = (u32)frame[39] - 1;
	if (frame[38] != 0x04 || frame[40] != 0x07 || digits < 1 || digits > MAX_PROBE_DIGITS)
		return 0;
	for (u32 i = 0; i < MAX_PROBE_DIGITS; i++)
		if (i < digits && !is_digit(frame[PROBE_DIGITS_AT + i]))
			return 0;
	/* Time to live; organisation-specific, with stamp and authenticator; end. */
	tail = frame + PROBE_DIGITS_AT + digits;
	return bytes >= PROBE_DIGITS_AT + digits + PROBE_TAIL_BYTES && get16(tail) == 0x0602 &&
	       get32(tail + 4) == 0xfe1c0275 && get16(tail + 8) == 0x7201 && get16(tail + 34) == 0;
}
