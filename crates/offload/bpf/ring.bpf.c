// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT
/* Pass-through: the messages of many switches reach the program in memory, parsed.
 *
 *   switch ══► its socket ──► to_ring() ══► ring: entries of several messages, and the locations of their fields
 *                                 │           │
 *                                 │           ▼
 *                                 │         program
 *                                 ▼           ▲
 *                              the socket's queue: input that is not for the ring, in order
 *
 * All or nothing: a piece of input is put into the ring if all of it can be; otherwise it is passed to the program unchanged.
 * From then on all input is passed, until the program has read all passed input and hands over again (owner.h). So the order is
 * kept. An entry of this ring reports the change, after all earlier messages.
 *
 * Messages that the program does not read stay in the ring. When the ring is full, input is passed, the socket's queue grows,
 * and TCP stops the switch.
 */
#include "packet_in.h"
#include "ring_session.h"
#include "sessions.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define MAX_RINGS 1024

/* Minimum size of a ring: a page. The program creates larger ones. */
#define LEAST_RING_BYTES 4096

struct ring_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, LEAST_RING_BYTES);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, MAX_RINGS);
	__type(key, u32);
	__array(values, struct ring_map);
} rings SEC(".maps");

/* For each ring, whether it was too full to report passed input. The program checks this when the ring is empty. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MAX_RINGS);
	__type(key, u32);
	__type(value, u64);
} untold SEC(".maps");

/* ---- Reading the input ---- */

struct look {
	struct session *session;
	u32 at;           /* start of the next message */
	u32 end;          /* end of the input */
	u32 messages;
	u32 is_other;     /* it has a message that is not for the ring */
};

INLINE u8 *input_at(struct session *session, u32 at) { return session->input + (at & (RING_INPUT_ROOM - 1)); }

/* Describes the message. Returns 0 if that is not possible here. */
INLINE int describe(struct session *session, const u8 *message, u32 bytes, struct record *record)
{
	struct packet_in packet;

	record->bytes = bytes;
	record->type = message[1];
	record->xid = get32(message + 4);
	if (message[1] != OFPT_PACKET_IN)
		return 1;
	if (!read_packet_in(message, bytes, session->version, &packet))
		return 0;
	/* The numbers of reserved ports differ in 1.3. */
	if (session->version == OF10 && packet.in_port >= OF10_ORDINARY_PORTS)
		return 0;
	record->buffer_id = packet.buffer_id;
	record->in_port = packet.in_port;
	record->frame_at = packet.data_at;
	record->frame_bytes = packet.data_bytes;
	return 1;
}

static long look_at_message(u32 index, void *context)
{
	struct look *look = context;
	struct session *session = look->session;
	u32 left = look->end - look->at, bytes;
	const u8 *message = input_at(session, look->at);

	if (left < HEADER_BYTES)
		return 1;
	bytes = get16(message + 2);
	if (message[0] != session->version || message[1] > 63 || !(session->types >> message[1] & 1) ||
	    bytes < HEADER_BYTES) {
		look->is_other = 1;
		return 1;
	}
	if (left < bytes)
		return 1;
	if (session->wants_records) {
		struct record *record = &session->records[index & (MAX_RECORDS - 1)];

		record->at = look->at;
		if (!describe(session, message, bytes, record)) {
			look->is_other = 1;
			return 1;
		}
	}
	look->messages++;
	look->at += bytes;
	return 0;
}

/* ---- The ring ---- */

/* Puts the messages up to `bytes` into the ring. Returns a negative number if it is full. */
INLINE s32 put_messages(struct session *session, u32 records, u32 bytes)
{
	struct entry head = {.connection = session->connection, .records = records, .bytes = bytes};
	u32 record_bytes = records * sizeof(struct record);
	u32 ring_at = session->ring;
	void *ring = bpf_map_lookup_elem(&rings, &ring_at);
	struct bpf_dynptr to;
	s32 failed;

	if (!ring || records > MAX_RECORDS || bytes > RING_INPUT_ROOM)
		return -1;
	failed = bpf_ringbuf_reserve_dynptr(ring, sizeof(head) + record_bytes + bytes, 0, &to);
	if (!failed) {
		failed = bpf_dynptr_write(&to, 0, &head, sizeof(head), 0);
		failed |= bpf_dynptr_write(&to, sizeof(head), session->records, record_bytes, 0);
		failed |= bpf_dynptr_write(&to, sizeof(head) + record_bytes, session->input, bytes, 0);
	}
	if (failed)
		bpf_ringbuf_discard_dynptr(&to, 0);
	else
		bpf_ringbuf_submit_dynptr(&to, 0);
	return failed ? -1 : 0;
}

/* Reports to the program that the connection's input is passed from now on. */
INLINE void tell_passed(struct session *session)
{
	struct entry head = {.connection = session->connection};
	u32 ring_at = session->ring;
	void *ring = bpf_map_lookup_elem(&rings, &ring_at);
	u64 *is_untold = bpf_map_lookup_elem(&untold, &ring_at);

	if (!ring || !is_untold || !bpf_ringbuf_output(ring, &head, sizeof(head), 0))
		return;
	__sync_fetch_and_or(is_untold, 1);
	/* The program checks the flag after it has emptied the ring. It may have done both in between: then the ring has space
	 * now. */
	bpf_ringbuf_output(ring, &head, sizeof(head), 0);
}

/* Puts the input into the ring if all of it can be. Returns the end of its complete messages, or a negative number if it is
 * passed. */
INLINE s32 put_input(struct __sk_buff *skb, struct session *session, u32 carried, u32 bytes)
{
	struct look look = {.session = session, .end = carried + bytes};
	u32 at;

	if (bytes > RING_INPUT_BYTES) {
		session->passed_long++;
		return -1;
	}
	if (session->is_wanted || bpf_skb_load_bytes(skb, 0, session->input + carried, bytes)) {
		session->passed_other++;
		return -1;
	}
	bpf_loop(MAX_RECORDS, look_at_message, &look, 0);
	at = look.at;
	if (look.is_other) {
		session->passed_other++;
		return -1;
	}
	/* A long message has started, or the input has too many messages. */
	if (look.end - at >= RING_CARRY_BYTES || look.messages == MAX_RECORDS) {
		session->passed_long++;
		return -1;
	}
	if (at && put_messages(session, session->wants_records ? look.messages : 0, at) < 0) {
		session->passed_full++;
		return -1;
	}
	session->delivered += at;
	return at;
}

/* Keeps the start of an incomplete message. */
INLINE void carry(struct session *session, u32 at, u32 end)
{
	u32 bytes = end - at;

	session->carried = bytes;
	if (bytes == 0 || bytes > RING_CARRY_BYTES || at == 0)
		return;
	bpf_probe_read_kernel(session->input, bytes, input_at(session, at));
}

SEC("sk_skb/verdict")
int to_ring(struct __sk_buff *skb)
{
	struct session *session = session_of(skb);
	u32 bytes = skb->len, carried;
	s32 at;

	if (is_end_of_stream(skb))
		return SK_DROP;
	if (!session || !begin_turn(&session->owner, bytes))
		return SK_PASS;
	carried = session->carried;
	if (carried >= RING_CARRY_BYTES)
		carried = RING_CARRY_BYTES - 1;
	at = put_input(skb, session, carried, bytes);
	if (at < 0) {
		end_turn(&session->owner, bytes);
		tell_passed(session);
		return SK_PASS;
	}
	carry(session, at, carried + bytes);
	end_turn(&session->owner, 0);
	return SK_DROP;
}
