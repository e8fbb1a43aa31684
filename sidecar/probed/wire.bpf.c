/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The wire tap: a socket filter on an AF_PACKET socket that times HTTP/1.1 requests and their
 * server-sent events on watched ports. It keeps everything in maps and always returns 0, so that
 * no packet is ever copied to user space; of request bodies a hash is made and nothing kept.
 */
#include "wire_tcp.h"

#define HOST 0     /* skb->pkt_type, linux/if_packet.h */
#define LOOPBACK 1 /* LOOPBACK_IFINDEX of every network namespace, net/flow.h */

/* What one packet has brought is entered once the whole of it was read. */
static __always_inline void conclude(struct run *run)
{
	if (run->work->verdict == GO_ON) { /* else the connection is no longer tracked */
		settle(run->conn, run->work);
		end_loose(run);
		if (run->work->tcp_flags & (FIN | RST))
			close_side(run);
	}
	leave(run);
}

#include "wire_scan.h"

/* Takes the lock of the packet's connection, or begins one. 0 when there is none. */
static __always_inline int find(struct run *run)
{
	struct work *work = run->work;

	if (run->conn && !take(run))
		return 0;
	if ((work->tcp_flags & SYN) && !shake_hands(run))
		return 0;
	if (run->conn)
		return 1;
	if (work->tcp_flags & RST)
		bare_reset(work);
	if (work->direction == RESPONSE || work->offset >= work->end)
		return 0;
	run->conn = adopt(run->skb, work);
	if (!run->conn || work->held)
		return run->conn != 0;
	return !is_copy(run->conn, work) && take(run) && run->conn;
}

/* On lo each packet passes twice. On its way out it is in order; on its way in those that a sender
 * gave to the queues of two CPUs overtake each other. So PACKET_IGNORE_OUTGOING, which leaves out
 * the wrong half, is of no use. */
static __always_inline int second_pass(struct __sk_buff *skb)
{
	return skb->ifindex == LOOPBACK && skb->pkt_type == HOST;
}

/* A segment that brings something. Of its own so that one that does not is done before `run` is on
 * the stack. */
SUBPROGRAM void follow(struct __sk_buff *skb, struct work *work, struct conn *conn)
{
	struct run run = {.skb = skb, .work = work, .conn = conn};

	work->now = bpf_ktime_get_ns();
	if (conn && is_copy(conn, work)) {
		sent_again(&run, flow_of(&run), 1);
		return;
	}
	work->verdict = GO_ON;
	work->loaded = 0; /* the block is of an earlier packet */
	work->gone = 0;
	if (!find(&run))
		return;
	if (is_copy(run.conn, work) || far_off(&run)) {
		leave(&run);
		return;
	}
	if (work->offset < work->end && in_sequence(&run))
		walk(&run);
	conclude(&run);
}

PROBE("socket")
int wire(struct __sk_buff *skb)
{
	struct work *work = LOOKUP(works, &SOLE);
	struct conn *conn;

	if (second_pass(skb) || !work || !read_segment(skb, work))
		return 0;
	count(PACKETS, 1);
	if (work->offset >= work->end && !(work->tcp_flags & (FIN | SYN | RST)) && work->window)
		return 0;
	work->start = work->offset;
	conn = LOOKUP(conns, &work->key);
	if (conn) {
		window_closes(conn, work);
		if (is_copy(conn, work) && seen_elsewhere(skb, conn, work))
			return 0;
		work->tried = 0;
		if (usual(skb, work, conn))
			return 0;
	}
	follow(skb, work, conn);
	return 0;
}
