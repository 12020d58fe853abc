/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* The base of every application that answers in the kernel. An application handles complete messages and writes replies; this
 * file does the rest.
 *
 *   switch ══► its socket ──► from_switch() ──► program: input not answered here, in order
 *                                  │ the replies are in `session.replies`
 *                                  ▼ the input itself is passed on, as a signal
 *                             relay: one end of a pair of Unix sockets ──► the other end
 *                                                                               │
 *   switch ◄══ its socket ◄── as much output as there are replies ◄── to_switch()
 *
 * Why the relay: the kernel counts the bytes read from a TCP socket (`copied_seq`) by the length of the data after the verdict.
 * A reply that is longer than its request would count more bytes than arrived, and the socket would no longer wake its reader.
 * Unix sockets count nothing, so the data can have any length in the second half of the path.
 *
 * All or nothing: a piece of input is answered here if all of it can be; otherwise it is passed to the program unchanged. It is
 * first read without any change, and then answered.
 *
 * An application is a file that defines, in this order:
 *   - `struct application`, which session.h appends to the session: its tables and settings, which the program has mapped;
 *   - after it has included this file, longest_reply() and answer_message(), which are declared below;
 *   - its licence.
 * src/loaded.rs loads it by its object and the size of its `struct application`.
 */
#pragma once

#include "packet_in.h"
#include "session.h"
#include "sessions.h"

/* Maximum number of bytes of replies in transit to the socket's send queue. */
#define MAX_UNWRITTEN_BYTES (128 << 10)

/* Maximum size of the send queue for a switch, in bytes of kernel memory. */
#define MAX_QUEUED_BYTES (1 << 20)

/* Minimum size of a ring: a page. */
#define WAKER_BYTES 4096

/* Exceeds the number of messages that fit into a piece of input. */
#define MAX_MESSAGES ((INPUT_BYTES + CARRY_BYTES) / HEADER_BYTES)

/* Maximum number of bytes that bpf_skb_adjust_room() adds or removes at once. */
#define ROOM_STEP 4095

/* Fields of the kernel's structures that are read. */
struct sock {
	int sk_sndbuf;
	int sk_wmem_queued;
} __attribute__((preserve_access_index));

struct inet_sock {
	struct sock sk;
} __attribute__((preserve_access_index));

struct inet_connection_sock {
	struct inet_sock icsk_inet;
} __attribute__((preserve_access_index));

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 write_seq;
} __attribute__((preserve_access_index));

/* Each slot's ring wakes the program when it becomes the owner. Without it, the program would have to be woken for all
 * input, because a socket also wakes its readers for input that is answered here. */
struct waker_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, WAKER_BYTES);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, MAX_SESSIONS);
	__type(key, u32);
	__array(values, struct waker_map);
} wakers SEC(".maps");

/* The sockets of `switches`, including those that are temporarily removed from it. No program runs here: the map keeps input
 * that was passed to the program but not read yet, which the kernel discards when a socket leaves its last map. */
struct {
	__uint(type, BPF_MAP_TYPE_SOCKMAP);
	__uint(max_entries, MAX_SESSIONS);
	__type(key, u32);
	__type(value, u64);
} keepers SEC(".maps");

/* The ends of the pairs of Unix sockets that from_switch() sends to. */
struct {
	__uint(type, BPF_MAP_TYPE_SOCKMAP);
	__uint(max_entries, MAX_SESSIONS);
	__type(key, u32);
	__type(value, u64);
} relays SEC(".maps");

/* The other ends, whose output passes through to_switch(). */
struct {
	__uint(type, BPF_MAP_TYPE_SOCKMAP);
	__uint(max_entries, MAX_SESSIONS);
	__type(key, u32);
	__type(value, u64);
} exits SEC(".maps");

/* Wakes the program, which finds either input or, until that arrives, that it is the owner. */
INLINE void wake_program(u32 slot)
{
	void *waker = bpf_map_lookup_elem(&wakers, &slot);
	u64 nothing = 0;

	if (waker)
		bpf_ringbuf_output(waker, &nothing, sizeof(nothing), BPF_RB_FORCE_WAKEUP);
}

/* The start and end of the replies that have not left the session. */
struct span {
	u32 begin, end;
};

INLINE struct span span_of(u64 word)
{
	struct span span = {word, word >> 32};

	return span;
}

/* Returns the offset of the next reply: the front if all replies have left and none is being copied. */
INLINE u32 free_from(struct session *session)
{
	/* In this order: a sender that starts later sees that all replies have left. */
	struct span span = span_of(*(volatile u64 *)&session->span);
	s64 senders = *(volatile s64 *)&session->senders;

	/* Negative if a session was cleared for another switch while a sender was running. */
	return span.begin == span.end && senders <= 0 ? 0 : span.end;
}

/* ---- Defined by an application ---- */

/* The answers to a piece of input. */
struct answer {
	struct session *session;
	u32 at;           /* start of the next message */
	u32 end;          /* end of the last one */
	u32 to;           /* offset of the next reply: see reply_at() */
	u32 now_s;
	u32 messages;
	u32 replies;      /* number of replies written */
};

INLINE u8 *input_at(struct session *session, u32 at) { return session->input + (at & (INPUT_ROOM - 1)); }
INLINE u8 *reply_at(struct session *session, u32 at) { return session->replies + (at & (REPLY_ROOM - 1)); }

INLINE u32 next_xid(struct session *session)
{
	session->xid++;
	return XID_SENDER | (session->xid & XID_COUNTER);
}

/* Returns the maximum size of the replies to this message, which is complete and of the session's version; a negative number
 * if the message is not answered here. Changes nothing. At least SLACK bytes can be read at `message`. */
INLINE s32 longest_reply(struct session *session, const u8 *message, u32 bytes);

/* Writes the replies to a message that is answered here. Advances `to`, and counts the replies in `replies`. */
INLINE void answer_message(struct answer *answer, const u8 *message, u32 bytes);

/* ---- Reading the input ---- */

struct look {
	struct session *session;
	u32 at;           /* start of the next message */
	u32 end;          /* end of the input */
	u32 longest;      /* maximum size of the replies */
	u32 is_other;     /* it has a message that is not answered here */
};

static long look_at_next(u32 index, void *context)
{
	struct look *look = context;
	struct session *session = look->session;
	u32 left = look->end - look->at, bytes;
	const u8 *message = input_at(session, look->at);
	s32 longest;

	if (left < HEADER_BYTES)
		return 1;
	bytes = get16(message + 2);
	if (message[0] != session->version || bytes < HEADER_BYTES || bytes > CARRY_BYTES) {
		look->is_other = 1;
		return 1;
	}
	if (left < bytes)
		return 1;
	longest = longest_reply(session, message, bytes);
	if (longest < 0) {
		look->is_other = 1;
		return 1;
	}
	look->longest += longest;
	look->at += bytes;
	return 0;
}

/* ---- Answering it ---- */

static long answer_next(u32 index, void *context)
{
	struct answer *answer = context;
	const u8 *message = input_at(answer->session, answer->at);
	u32 bytes;

	if (answer->at >= answer->end)
		return 1;
	bytes = get16(message + 2);
	answer_message(answer, message, bytes);
	answer->messages++;
	answer->at += bytes;
	return 0;
}

/* ---- The two ends of the path ---- */

/* Returns whether the switch reads its replies about as fast as they are sent, so that this number of bytes at this offset
 * can be sent. Replies in transit have no back-pressure, so they must be held back before. */
INLINE int has_room(struct __sk_buff *skb, struct session *session, u32 from, u32 bytes)
{
	struct bpf_sock *sk = skb->sk;
	struct tcp_sock *tcp;
	u32 unwritten, queued, limit;

	if (!sk)
		return 0;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (!tcp)
		return 0;
	if (session->is_fresh) {
		session->is_fresh = 0;
		session->write_seq = tcp->write_seq;
		session->unwritten_base = session->reply_bytes;
	}
	/* While the kernel is the owner, only replies from here are written: this is the number of sent bytes minus that of
	 * written ones. */
	unwritten = ((u32)session->reply_bytes - session->unwritten_base) - (tcp->write_seq - session->write_seq);
	queued = tcp->inet_conn.icsk_inet.sk.sk_wmem_queued;
	limit = (u32)tcp->inet_conn.icsk_inet.sk.sk_sndbuf / 2;
	if (limit > MAX_QUEUED_BYTES)
		limit = MAX_QUEUED_BYTES;
	return unwritten + bytes <= MAX_UNWRITTEN_BYTES && queued <= limit &&
	       from + bytes <= REPLY_ROOM;
}

/* Makes replies that were written from `from` to `to` visible to to_switch(), which may be sending earlier ones
 * concurrently. */
INLINE void publish(struct session *session, u32 from, u32 to)
{
	if (from == to)
		return;
#pragma unroll
	for (int attempt = 0; attempt < 4; attempt++) {
		u64 word = *(volatile u64 *)&session->span;
		u64 begin = from ? span_of(word).begin : 0;

		if (__sync_val_compare_and_swap(&session->span, word, (u64)to << 32 | begin) == word)
			return;
	}
}

/* Answers the input if all of it can be answered. Returns the end of its complete messages, or a negative number if it is
 * for the program. */
INLINE s32 answer_input(struct __sk_buff *skb, struct session *session, u32 carried, u32 bytes)
{
	struct look look = {.session = session, .end = carried + bytes};
	struct answer answer = {.session = session};
	u32 from = free_from(session);

	if (bytes > INPUT_BYTES || bytes > session->max_input_bytes) {
		session->passed_long++;
		return -1;
	}
	if (bpf_skb_load_bytes(skb, 0, session->input + carried, bytes))
		return -1;
	bpf_loop(MAX_MESSAGES, look_at_next, &look, 0);
	if (look.is_other) {
		session->passed_other++;
		return -1;
	}
	if (!has_room(skb, session, from, look.longest)) {
		session->passed_full++;
		return -1;
	}
	answer.end = look.at;
	answer.to = from;
	answer.now_s = (bpf_ktime_get_ns() - session->clock_ns) / 1000000000;
	bpf_loop(MAX_MESSAGES, answer_next, &answer, 0);
	session->answered += answer.messages;
	session->replies_sent += answer.replies;
	session->reply_bytes += answer.to - from;
	publish(session, from, answer.to);
	return look.at;
}

/* Keeps the start of an incomplete message. */
INLINE void carry(struct session *session, u32 at, u32 end)
{
	u32 bytes = end - at;

	session->carried = bytes;
	if (bytes == 0 || bytes > CARRY_BYTES || at == 0)
		return;
	bpf_probe_read_kernel(session->input, bytes, input_at(session, at));
}

SEC("sk_skb/verdict")
int from_switch(struct __sk_buff *skb)
{
	struct session *session = session_of(skb);
	u32 bytes = skb->len, carried, slot;
	u64 before;
	s32 at;

	if (is_end_of_stream(skb))
		return SK_DROP;
	if (!session || !begin_turn(&session->owner, bytes))
		return SK_PASS;
	carried = session->carried;
	if (carried >= CARRY_BYTES)
		carried = CARRY_BYTES - 1;
	slot = session->slot;
	before = session->reply_bytes;
	at = answer_input(skb, session, carried, bytes);
	if (at < 0) {
		end_turn(&session->owner, bytes);
		wake_program(slot);
		return SK_PASS;
	}
	session->taken_bytes += bytes;
	carry(session, at, carried + bytes);
	before = session->reply_bytes - before;
	end_turn(&session->owner, 0);
	return before ? bpf_sk_redirect_map(skb, &relays, slot, 0) : SK_DROP;
}

/* Sets the length of the data by changing its front. */
struct resize {
	struct __sk_buff *skb;
	u32 bytes;
};

static long resize_step(u32 index, void *context)
{
	struct resize *resize = context;
	s32 missing = (s32)resize->bytes - (s32)resize->skb->len;

	if (missing == 0)
		return 1;
	if (missing > ROOM_STEP)
		missing = ROOM_STEP;
	if (missing < -ROOM_STEP)
		missing = -ROOM_STEP;
	return bpf_skb_adjust_room(resize->skb, missing, 0, 0) != 0;
}

/* A call of to_switch(). Several can run concurrently, because the program also signals if replies wait here for long. */
struct sender {
	struct __sk_buff *skb;
	struct session *session;
	u32 has_taken;
};

/* Removes replies from the session, unless another sender has removed them. Concurrently, from_switch() only appends at the
 * end. */
INLINE int take(struct session *session, u32 begin, u32 bytes)
{
#pragma unroll
	for (int attempt = 0; attempt < 4; attempt++) {
		u64 word = *(volatile u64 *)&session->span;

		if (span_of(word).begin != begin)
			return 0;
		if (__sync_val_compare_and_swap(&session->span, word, word + bytes) == word)
			return 1;
	}
	return 0;
}

/* Copies the waiting replies and removes them. Returns 1 when that is done or is impossible. */
static long take_replies(u32 index, void *context)
{
	struct sender *sender = context;
	struct __sk_buff *skb = sender->skb;
	struct session *session = sender->session;
	struct span span = span_of(*(volatile u64 *)&session->span);
	struct resize resize = {.skb = skb, .bytes = span.end - span.begin};
	u32 bytes, begin;

	/* A signal may arrive in several pieces. The first of them has sent all replies. */
	if (span.begin >= span.end)
		return 1;
	bpf_loop(REPLY_ROOM / ROOM_STEP + 2, resize_step, &resize, 0);
	/* If memory is short, the rest is sent with the next signal. */
	bytes = skb->len < resize.bytes ? skb->len : resize.bytes;
	begin = span.begin & (REPLY_ROOM - 1);
	if (bytes == 0 || bytes > REPLY_ROOM)
		return 1;
	if (bpf_skb_store_bytes(skb, 0, session->replies + begin, bytes, 0))
		return 1;
	sender->has_taken = take(session, span.begin, bytes);
	return sender->has_taken;
}

/* More than the number of senders: a sender starts again only after another has removed replies. */
#define MAX_TURNS 16

SEC("sk_skb/verdict")
int to_switch(struct __sk_buff *skb)
{
	struct session *session = session_of(skb);
	struct sender sender = {.skb = skb, .session = session};

	if (!session)
		return SK_DROP;
	__sync_fetch_and_add(&session->senders, 1);
	bpf_loop(MAX_TURNS, take_replies, &sender, 0);
	__sync_fetch_and_add(&session->senders, -1);
	return sender.has_taken ? bpf_sk_redirect_map(skb, &switches, session->slot, 0) : SK_DROP;
}
