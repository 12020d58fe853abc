// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT
/* The learning switch `l2` in the kernel: apps/src/l2.rs, decision by decision and byte by byte. */
#include "mac_table.h"
#include "replies.h"
#include "answering.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

INLINE s32 longest_reply(struct session *session, const u8 *message, u32 bytes)
{
	struct packet_in packet;
	const u8 *frame;
	u64 dst;

	if (session->application.places_taken > session->application.max_taken)
		return -1;
	if (message[1] != OFPT_PACKET_IN || !read_packet_in(message, bytes, session->version, &packet))
		return -1;
	if (session->version == OF10 && packet.in_port >= OF10_ORDINARY_PORTS)
		return -1;
	if (packet.data_bytes > CARRY_BYTES)
		return -1;
	frame = message + packet.data_at;
	dst = get_mac(frame);
	/* Packets to groups of any kind are flooded. Other packets may get an entry, which is written only for plain ones. */
	if (!(dst & MULTICAST) && upper_of(frame, packet.data_bytes) == UPPER_NOT_PLAIN)
		return -1;
	return MAX_DELETE_BYTES + MAX_FLOW_MOD_BYTES + MAX_PACKET_OUT_BYTES +
	       (packet.buffer_id == OFP_NO_BUFFER ? packet.data_bytes : 0);
}

INLINE void forward(struct answer *answer, const struct packet_in *packet, const u8 *frame, u32 port)
{
	struct session *session = answer->session;
	u32 bytes = packet->buffer_id == OFP_NO_BUFFER ? packet->data_bytes : 0;

	answer->to += write_packet_out(reply_at(session, answer->to), session->version, next_xid(session), packet, port, bytes);
	answer->replies++;
	if (bytes == 0 || bytes > CARRY_BYTES)
		return;
	bpf_probe_read_kernel(reply_at(session, answer->to), bytes, frame);
	answer->to += bytes;
}

/* Like L2::packet_in of l2.rs. */
INLINE void answer_packet_in(struct answer *answer, const struct packet_in *packet, const u8 *frame)
{
	struct session *session = answer->session;
	struct application *table = &session->application;
	u64 dst = get_mac(frame), src = get_mac(frame + 6);
	u32 port;

	if (is_link_local(dst))
		return;
	if (learn(table, src, packet->in_port, answer->now_s) == LEARNED_MOVED) {
		u32 xid = next_xid(session);

		answer->to += write_delete(reply_at(session, answer->to), session->version, xid, frame + 6);
		answer->replies++;
	}
	if (!port_of(table, dst, answer->now_s, &port)) {
		if (dst & MULTICAST || may_flood(table, packet->in_port))
			forward(answer, packet, frame, session->version == OF10 ? OFPP_FLOOD_OF10 : OFPP_FLOOD_OF13);
	} else if (port == packet->in_port) {
		return;
	} else if (!may_add(table)) {
		forward(answer, packet, frame, port);
	} else {
		enum upper upper = upper_of(frame, packet->data_bytes);
		u32 xid = next_xid(session);

		answer->to +=
			write_flow_mod(reply_at(session, answer->to), session->version, xid, packet, frame, upper, port);
		answer->replies++;
		if (packet->buffer_id == OFP_NO_BUFFER)
			forward(answer, packet, frame, port);
	}
}

INLINE void answer_message(struct answer *answer, const u8 *message, u32 bytes)
{
	struct packet_in packet;

	/* The state that was read before is still valid. */
	if (read_packet_in(message, bytes, answer->session->version, &packet))
		answer_packet_in(answer, &packet, message + packet.data_at);
}
