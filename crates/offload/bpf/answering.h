/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* The base of every application that answers in the kernel: an application handles whole messages and writes replies, and this file does the rest.
 *
 *   switch ══► its socket ──► from_switch() ──► program: input not answered here, in order
 *                                  │ the replies are in `session.replies`
 *                                  ▼ the input itself is passed on, as a signal
 *                             relay: one end of a pair of Unix sockets ──► the other end
 *                                                                               │
 *   switch ◄══ its socket ◄── as much output as there are replies ◄── to_switch()
 *
 * Why the relay: the kernel counts what was read from a TCP socket (`copied_seq`) by the length of the data after
 * the verdict. A reply that is longer than its request would count more bytes than arrived, and the socket would no longer
 * wake its reader. Unix sockets count nothing, so the data can get any length on the second half of the way.
 *
 * All or nothing: a piece of input is answered here if all of it can be, or passed to the program unchanged. It is read
 * first, without any change, and answered then.
 *
 * An application is a file that defines, in this order,
 *   - `struct application`, which session.h appends to the session: its tables and settings, which the program has mapped;
 *   - after it has included this file, longest_reply() and answer_message(), which are declared below;
 *   - its licence.
 * src/loaded.rs loads it by its object and the size of its `struct application`.
 */
#pragma once

#include "packet_in.h"
#include "session.h"
#include "sessions.h"

/* Maximum number of bytes of replies on their way to the socket's send queue. */
#define MAX_UNWRITTEN_BYTES (128 << 10)

/* Maximum size of the send queue for a switch, in bytes of kernel memory. */
#define MAX_QUEUED_BYTES (1 << 20)

/* Minimum size of a ring: a page. */
#define WAKER_BYTES 4096

/* More messages than fit into a piece of input. */
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

/* Each slot's ring wakes the program when it becomes the owner. Without it the program would have to be woken for all input, since
 * a socket also wakes its readers for input that is answered here. */
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

/* The sockets of `switches`, also while they are out of it. Nothing runs here: it keeps input that was passed to the program and not
 * read yet, which the kernel discards when a socket leaves its last map. */
struct {
	__uint(type, BPF_MAP_TYPE_SOCKMAP);
	__uint(max_entries, MAX_SESSIONS);
	__type(key, u32);
	__type(value, u64);
} keepers SEC(".maps");

/* The ends of the pairs of Unix sockets into which from_switch() sends. */
struct {
	__uint(type, BPF_MAP_TYPE_SOCKMAP);
	__uint(max_entries, MAX_SESSIONS);
	__type(key, u32);
	__type(value, u64);
} relays SEC(".maps");

/* The other ends: their output passes through to_switch(). */
struct {
	__uint(type, BPF_MAP_TYPE_SOCKMAP);
	__uint(max_entries, MAX_SESSIONS);
	__type(key, u32);
	__type(value, u64);
} exits SEC(".maps");

/* Wakes the program, which finds input or, until that arrives, that it is the owner. */
INLINE void wake_program(u32 slot)
{
	void *waker = bpf_map_lookup_elem(&wakers, &slot);
	u64 nothing = 0;

	if (waker)
		bpf_ringbuf_output(waker, &nothing, sizeof(nothing), BPF_RB_FORCE_WAKEUP);
}

/* Replies that have not left the session: their start and end. */
struct span {
	u32 begin, end;
};

INLINE struct span span_of(u64 word)
{
	struct span span = {word, word >> 32};

	return span;
}

/* Returns the offset of the next reply: the front when all have left and none is being copied. */
INLINE u32 free_from(struct session *session)
{
	/* In this order: a sender that begins later sees that all have left. */
	struct span span = span_of(*(volatile u64 *)&session->span);
	s64 senders = *(volatile s64 *)&session->senders;

	/* Negative after a session was cleared for another switch beside a sender. */
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

/* Returns the maximum size of the replies to this message, which is whole and of the session's version; a negative number
 * if it is not answered here. Changes nothing. SLACK bytes can be read from `message` on. */
INLINE s32 longest_reply(struct session *session, const u8 *message, u32 bytes);

/* Writes the replies to a message that is answered here, and moves `to` and counts `replies`. */
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

/* ---- The two ends of the way ---- */

/* Returns whether the switch reads its replies about as fast as they are sent, so that this number of bytes, from this offset on,
 * can be sent from here. Replies on their way have no back-pressure, and so must be held back before. */
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
	/* Only replies from here are written while the kernel is the owner: the bytes sent less those written. */
	unwritten = ((u32)session->reply_bytes - session->unwritten_base) - (tcp->write_seq - session->write_seq);
	queued = tcp->inet_conn.icsk_inet.sk.sk_wmem_queued;
	limit = (u32)tcp->inet_conn.icsk_inet.sk.sk_sndbuf / 2;
	if (limit > MAX_QUEUED_BYTES)
		limit = MAX_QUEUED_BYTES;
	return unwritten + bytes <= MAX_UNWRITTEN_BYTES && queued <= limit &&
	       from + bytes <= REPLY_ROOM;
}

/* Lets to_switch() see replies that were written from `from` to `to`. It may send earlier ones concurrently. */
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

/* Answers the input, if all of it can be. Returns its end, without the start of a message there, or a
 * negative number if it is for the program. */
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

/* Sets the length of the data, at its front. */
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

/* A call of to_switch(). Several can run concurrently: the program also signals, if replies wait here for long. */
struct sender {
	struct __sk_buff *skb;
	struct session *session;
	u32 has_taken;
};

/* Removes replies from the session, unless another sender has since. from_switch() only appends at the end concurrently. */
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

/* Copies the waiting replies and takes them. Returns 1 when that is done or cannot be. */
static long take_replies(u32 index, void *context)
{
	struct sender *sender = context;
	struct __sk_buff *skb = sender->skb;
	struct session *session = sender->session;
	struct span span = span_of(*(volatile u64 *)&session->span);
	struct resize resize = {.skb = skb, .bytes = span.end - span.begin};
	u32 bytes, begin;

	/* A signal may arrive in several pieces, the first of which has sent all replies. */
	if (span.begin >= span.end)
		return 1;
	bpf_loop(REPLY_ROOM / ROOM_STEP + 2, resize_step, &resize, 0);
	/* If memory is short, the rest leaves with the next signal. */
	bytes = skb->len < resize.bytes ? skb->len : resize.bytes;
	begin = span.begin & (REPLY_ROOM - 1);
	if (bytes == 0 || bytes > REPLY_ROOM)
		return 1;
	if (bpf_skb_store_bytes(skb, 0, session->replies + begin, bytes, 0))
		return 1;
	sender->has_taken = take(session, span.begin, bytes);
	return sender->has_taken;
}

/* More than there are senders: a sender starts again only after another has taken replies. */
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
