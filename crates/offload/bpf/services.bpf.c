// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT
/* The program's services in the kernel: frequent packets for them are settled by their tables.
 *
 *   echo requests and replies           answered, as the session does (controller/src/session.rs)
 *   probes of known links               noted (services/src/discovery)
 *   requests for addresses of hosts     answered (services/src/neighbour_proxy)
 *   answers of hosts to our probes      noted (services/src/hosts)
 *   first packets of flows              forwarded by the next hop; the program installs the path (apps/src/routing.rs)
 *
 * A packet-in that is settled but has news is put into `events`, whole: the control queue. The program receives it before
 * input that is passed later. */
#include "service_tables.h"
#include "answering.h"
#include "packet_out.h"
#include "link_probe.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* to_switch() may read this number of bytes after the start of any reply, according to the kernel's verifier. */
_Static_assert(sizeof(struct application) + SLACK >= REPLY_ROOM, "nothing is read beyond the session");

#define OFPT_ECHO_REQUEST 2
#define OFPT_ECHO_REPLY 3

#define OFPP_CONTROLLER_OF10 0xfffd
#define OFPP_CONTROLLER_OF13 0xfffffffdU

/* The position of the sender in an xid; it is 0 in the session's own. */
#define XID_SENDER_SHIFT 24

/* ---- The treatment of a message ---- */

/* The ingress port of a packet, and the program's settings. */
struct place {
	struct port_key port;
	const struct settings *settings;
};

INLINE int is_at(const struct port_key *a, const struct port_key *b)
{
	return a->datapath_id == b->datapath_id && a->port == b->port;
}

INLINE void set_host(struct host_key *key, const struct frame *frame)
{
	copy6(key->mac, frame->at + 6);
	key->vlan = frame->vlan;
}

/* Returns whether a frame's information on its sender contradicts the tables. Sets `is_new` if it has news. */
INLINE int is_contradiction(const struct frame *frame, const struct neighbour *neighbour, const struct place *place, u8 *is_new)
{
	struct port_key *known;
	struct address_owner *owner;
	struct host_key host;

	set_host(&host, frame);
	known = bpf_map_lookup_elem(&hosts, &host);
	*is_new = !known || !is_at(known, &place->port);
	if (!neighbour->has_sender)
		return 0;
	owner = bpf_map_lookup_elem(&addresses, &neighbour->sender);
	if (!owner)
		*is_new = 1;
	return owner && get_mac(owner->mac) != frame->src;
}

/* Handles a request for an address, or a host's answer to one of our probes. */
INLINE int look_at_neighbour(const struct frame *frame, const struct neighbour *neighbour, const struct place *place,
			     struct verdict *verdict)
{
	const struct settings *settings = place->settings;
	struct address_owner *owner;

	if (frame->src & MAC_GROUP || frame->src == 0 || frame->src == settings->our_mac)
		return 0;
	if (is_link_local(frame->dst) || !bpf_map_lookup_elem(&host_ports, &place->port))
		return 0;
	if (is_contradiction(frame, neighbour, place, &verdict->is_event))
		return 0;
	if (neighbour->is_reply) {
		verdict->what = SETTLED_HOST;
		return settings->our_mac != 0 && frame->dst == settings->our_mac && !verdict->is_event;
	}
	if (!(frame->dst & MAC_GROUP) || settings->answers_as == 0)
		return 0;
	owner = bpf_map_lookup_elem(&addresses, &neighbour->target);
	if (!owner || get_mac(owner->mac) == frame->src)
		return 0;
	verdict->what = frame->type == ETHERTYPE_ARP ? SETTLED_ARP : SETTLED_ND;
	verdict->is_router = owner->is_router;
	copy6(verdict->mac, owner->mac);
	return 1;
}

INLINE int look_at_lldp(const struct frame *frame, const struct place *place, struct verdict *verdict)
{
	struct expected_probe *probe = bpf_map_lookup_elem(&expected, &place->port);

	if (probe && is_expected(frame->at, frame->bytes, probe)) {
		verdict->what = SETTLED_PROBE;
		return 1;
	}
	verdict->what = SETTLED_AS_EVENT;
	verdict->is_event = 1;
	return is_probe(frame->at, frame->bytes);
}

/* Returns the port out of which this switch sends packets for a host; 0 if it is not certain. */
INLINE u32 port_towards(const struct port_key *host, const struct place *place)
{
	struct pair pair = {.at = place->port.datapath_id, .to = host->datapath_id};
	u32 *port;

	if (host->datapath_id == place->port.datapath_id)
		return host->port == place->port.port ? 0 : host->port;
	port = bpf_map_lookup_elem(&next_hops, &pair);
	return port ? *port : 0;
}

/* Handles a packet from one known host to another, at the sender's port. */
INLINE int look_at_flow(const struct frame *frame, const struct place *place, struct verdict *verdict)
{
	u64 our_mac = place->settings->our_mac;
	struct port_key *from, *to;
	struct host_key host;

	if (place->settings->forwards_as == 0 || frame->src == our_mac || frame->dst == our_mac || frame->src == frame->dst)
		return 0;
	if (!bpf_map_lookup_elem(&host_ports, &place->port))
		return 0;
	set_host(&host, frame);
	from = bpf_map_lookup_elem(&hosts, &host);
	copy6(host.mac, frame->at);
	to = bpf_map_lookup_elem(&hosts, &host);
	if (!from || !to || !is_at(from, &place->port))
		return 0;
	verdict->what = SETTLED_FLOW;
	verdict->is_event = 1;
	verdict->port = port_towards(to, place);
	return verdict->port != 0;
}

INLINE int look_at_packet_in(struct session *session, const u8 *message, u32 bytes, struct verdict *verdict)
{
	struct neighbour neighbour = {};
	struct packet_in packet;
	struct frame frame;
	struct place place = {};
	u32 only = 0;

	if (!read_packet_in(message, bytes, session->version, &packet))
		return 0;
	if (session->version == OF10 && packet.in_port >= OF10_ORDINARY_PORTS)
		return 0;
	place.settings = bpf_map_lookup_elem(&settings, &only);
	if (!place.settings)
		return 0;
	place.port.datapath_id = session->application.datapath_id;
	place.port.port = packet.in_port;
	read_frame(message + packet.data_at, packet.data_bytes, &frame);
	if (frame.type == ETHERTYPE_LLDP && frame.payload_at == ETH_BYTES)
		return look_at_lldp(&frame, &place, verdict);
	if (frame.type == ETHERTYPE_ARP)
		return read_arp(&frame, &neighbour) && look_at_neighbour(&frame, &neighbour, &place, verdict);
	if (frame.type == ETHERTYPE_IPV6)
		return read_solicitation(&frame, &neighbour) && look_at_neighbour(&frame, &neighbour, &place, verdict);
	if (frame.type == ETHERTYPE_IPV4)
		return look_at_flow(&frame, &place, verdict);
	return 0;
}

/* Returns the length of a message's event. */
INLINE u32 told_bytes(const struct verdict *verdict, u32 bytes)
{
	return verdict->what == SETTLED_FLOW && bytes > FLOW_EVENT_BYTES ? FLOW_EVENT_BYTES : bytes;
}

/* Keeps a verdict until it is carried out. Returns 0 if there is no space for it, or for its event. */
INLINE int keep(struct application *services, const struct verdict *verdict, u32 bytes)
{
	u32 at = services->looked_at;

	if (at >= MAX_VERDICTS)
		return 0;
	if (verdict->is_event) {
		bytes = told_bytes(verdict, bytes);
		if (bytes > MAX_EVENT_BYTES)
			return 0;
		if (services->event_bytes + services->events_due + bytes > EVENT_ROOM) {
			services->events_full++;
			return 0;
		}
		services->events_due += bytes;
	}
	services->verdicts[at & (MAX_VERDICTS - 1)] = *verdict;
	services->looked_at = at + 1;
	return 1;
}

INLINE s32 longest_reply(struct session *session, const u8 *message, u32 bytes)
{
	struct verdict verdict = {};

	switch (message[1]) {
	case OFPT_ECHO_REQUEST:
		verdict.what = SETTLED_ECHO_REQUEST;
		return keep(&session->application, &verdict, bytes) ? (s32)bytes : -1;
	case OFPT_ECHO_REPLY:
		verdict.what = SETTLED_ECHO_REPLY;
		return get32(message + 4) >> XID_SENDER_SHIFT == 0 && keep(&session->application, &verdict, bytes) ? 0 : -1;
	case OFPT_PACKET_IN:
		if (!look_at_packet_in(session, message, bytes, &verdict) || !keep(&session->application, &verdict, bytes))
			return -1;
		/* A forwarded packet keeps its length. */
		return MAX_PACKET_OUT_BYTES + (verdict.what == SETTLED_FLOW ? bytes : MAX_ANSWER_BYTES);
	default:
		return -1;
	}
}

/* ---- Carrying out the treatment ---- */

INLINE void count(u32 requests, u32 probes)
{
	u32 only = 0;
	struct counts *all = bpf_map_lookup_elem(&counts, &only);

	if (!all)
		return;
	if (requests)
		__sync_fetch_and_add(&all->requests, requests);
	if (probes)
		__sync_fetch_and_add(&all->probes, probes);
}

INLINE void answer_echo(struct answer *answer, const u8 *message, u32 bytes)
{
	u8 *reply = reply_at(answer->session, answer->to);

	if (bytes < HEADER_BYTES || bytes > CARRY_BYTES)
		return;
	bpf_probe_read_kernel(reply, bytes, message);
	reply[1] = OFPT_ECHO_REPLY;
	answer->to += bytes;
	answer->replies++;
}

INLINE void note_host(const struct frame *frame)
{
	struct host_key host;
	struct heard *entry;

	set_host(&host, frame);
	entry = bpf_map_lookup_elem(&heard, &host);
	if (!entry)
		return;
	__sync_fetch_and_add(&entry->count, 1);
	entry->last_ns = bpf_ktime_get_ns();
}

INLINE void note_probe(const struct session *session, u32 in_port)
{
	struct port_key port = {.datapath_id = session->application.datapath_id, .port = in_port};
	struct expected_probe *come = bpf_map_lookup_elem(&expected, &port);
	struct link_probe probe;

	count(0, 1);
	/* The program has removed the link, or expects the next probe. */
	if (!come)
		return;
	probe = come->probe;
	probe.settled_ns = bpf_ktime_get_ns();
	bpf_map_update_elem(&confirmed, &port, &probe, BPF_ANY);
}

/* Puts a packet-in, or its start, into the events. The caller has checked that there is space. */
INLINE void tell(struct session *session, const u8 *message, u32 bytes)
{
	struct application *services = &session->application;
	u32 at = services->event_bytes;
	u8 *event = services->events + (at & (EVENT_ROOM - 1));

	if (bytes > MAX_EVENT_BYTES)
		return;
	bpf_probe_read_kernel(event, bytes, message);
	put16(event + 2, bytes);
	services->event_bytes = at + bytes;
	services->events_due -= bytes;
	/* The program reads all events at once. */
	if (at == 0)
		wake_program(session->slot);
}

/* Like Switch::forward of controller/src/switch.rs. */
INLINE void send_on(struct answer *answer, const struct packet_in *packet, const u8 *data, const struct verdict *verdict)
{
	struct session *session = answer->session;
	struct settings *settings_now;
	u32 bytes = packet->buffer_id == OFP_NO_BUFFER ? packet->data_bytes : 0;
	u32 only = 0, xid;

	settings_now = bpf_map_lookup_elem(&settings, &only);
	if (!settings_now)
		return;
	session->xid++;
	xid = settings_now->forwards_as << XID_SENDER_SHIFT | (session->xid & XID_COUNTER);
	answer->to += write_packet_out(reply_at(session, answer->to), session->version, xid, packet, verdict->port, bytes);
	answer->replies++;
	if (bytes == 0 || bytes > CARRY_BYTES)
		return;
	bpf_probe_read_kernel(reply_at(session, answer->to), bytes, data);
	answer->to += bytes;
}

/* Sends an answer out of the ingress port of the request. */
INLINE void answer_request(struct answer *answer, const struct frame *frame, u32 in_port, const struct verdict *verdict)
{
	struct session *session = answer->session;
	struct packet_in from = {
		.buffer_id = OFP_NO_BUFFER,
		.in_port = session->version == OF10 ? OFPP_CONTROLLER_OF10 : OFPP_CONTROLLER_OF13,
	};
	struct settings *settings_now;
	u32 only = 0, bytes, xid;
	u8 *to = reply_at(session, answer->to);
	u8 *data = session->version == OF10 ? to + sizeof(OF10_PACKET_OUT) : to + sizeof(OF13_PACKET_OUT);

	settings_now = bpf_map_lookup_elem(&settings, &only);
	if (!settings_now)
		return;
	if (verdict->what == SETTLED_ARP)
		bytes = write_arp_reply(data, frame, verdict->mac);
	else
		bytes = write_advertisement(data, frame, verdict->mac, verdict->is_router);
	session->xid++;
	xid = settings_now->answers_as << XID_SENDER_SHIFT | (session->xid & XID_COUNTER);
	answer->to += write_packet_out(to, session->version, xid, &from, in_port, bytes) + bytes;
	answer->replies++;
	count(1, 0);
}

INLINE void settle_packet_in(struct answer *answer, const u8 *message, u32 bytes, const struct verdict *verdict)
{
	struct session *session = answer->session;
	struct packet_in packet;
	struct frame frame;

	if (!read_packet_in(message, bytes, session->version, &packet))
		return;
	read_frame(message + packet.data_at, packet.data_bytes, &frame);
	if (verdict->is_event)
		tell(session, message, told_bytes(verdict, bytes));
	switch (verdict->what) {
	case SETTLED_PROBE:
		note_probe(session, packet.in_port);
		return;
	case SETTLED_FLOW:
		send_on(answer, &packet, message + packet.data_at, verdict);
		return;
	case SETTLED_ARP:
	case SETTLED_ND:
		answer_request(answer, &frame, packet.in_port, verdict);
		break;
	}
	if (!verdict->is_event)
		note_host(&frame);
}

INLINE void answer_message(struct answer *answer, const u8 *message, u32 bytes)
{
	struct application *services = &answer->session->application;
	struct verdict verdict = services->verdicts[services->carried_out & (MAX_VERDICTS - 1)];

	services->carried_out++;
	if (services->carried_out >= services->looked_at)
		services->carried_out = services->looked_at = 0;
	switch (verdict.what) {
	case SETTLED_ECHO_REQUEST:
		answer_echo(answer, message, bytes);
		services->others++;
		return;
	case SETTLED_ECHO_REPLY:
		services->others++;
		return;
	default:
		settle_packet_in(answer, message, bytes, &verdict);
	}
}
