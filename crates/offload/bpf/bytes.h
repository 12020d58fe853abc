/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* Numbers at any address, in either byte order. The kernel lets programs read and write unaligned memory on the processors
 * that these programs are built for. */
#pragma once

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_core_read.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;

#define INLINE static __always_inline

/* Network byte order. */
INLINE u16 get16(const u8 *at) { return bpf_ntohs(*(const u16 *)at); }
INLINE u32 get32(const u8 *at) { return bpf_ntohl(*(const u32 *)at); }
INLINE u64 get64(const u8 *at) { return (u64)get32(at) << 32 | get32(at + 4); }
INLINE void put16(u8 *at, u16 value) { *(u16 *)at = bpf_htons(value); }
INLINE void put32(u8 *at, u32 value) { *(u32 *)at = bpf_htonl(value); }

/* Host byte order. */
INLINE void copy2(u8 *to, const u8 *from) { *(u16 *)to = *(const u16 *)from; }
INLINE void copy4(u8 *to, const u8 *from) { *(u32 *)to = *(const u32 *)from; }
INLINE void copy6(u8 *to, const u8 *from)
{
	copy4(to, from);
	copy2(to + 4, from + 4);
}

/* Copies a constant number of bytes, in words as far as possible. */
INLINE void copy_bytes(u8 *to, const u8 *from, u32 count)
{
	u32 at = 0;

#pragma unroll
	for (; at + 8 <= count; at += 8)
		*(u64 *)(to + at) = *(const u64 *)(from + at);
#pragma unroll
	for (; at + 2 <= count; at += 2)
		copy2(to + at, from + at);
}

/* Returns a MAC address as a number. */
INLINE u64 get_mac(const u8 *at) { return (u64)get32(at) << 16 | get16(at + 4); }
