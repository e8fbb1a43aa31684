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

/* Finds the packet's connection, or begins one, and takes its lock. 0 when there is none. */
static __always_inline int find(struct run *run)
{
	struct work *work = run->work;

	run->conn = LOOKUP(conns, &work->key);
	if (run->conn) {
		window_closes(run);
		if (is_copy(run)) {
			sent_again(run, flow_of(run), 1);
			return 0;
		}
		if (!take(run))
			return 0;
	}
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
	return !is_copy(run) && take(run) && run->conn;
}

/* On lo each packet passes twice. On its way out it is in order; on its way in those that a sender
 * gave to the queues of two CPUs overtake each other. So PACKET_IGNORE_OUTGOING, which leaves out
 * the wrong half, is of no use. */
static __always_inline int second_pass(struct __sk_buff *skb)
{
	return skb->ifindex == LOOPBACK && skb->pkt_type == HOST;
}

PROBE("socket")
int wire(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct work *work = LOOKUP(works, &zero);
	struct run run = {.skb = skb, .work = work};

	if (second_pass(skb) || !work || !read_segment(skb, work))
		return 0;
	count(PACKETS, 1);
	if (work->offset >= work->end && !(work->tcp_flags & (FIN | SYN | RST)) && work->window)
		return 0;
	work->now = bpf_ktime_get_ns();
	work->verdict = GO_ON;
	work->start = work->offset;
	work->loaded = 0; /* the block is of an earlier packet */
	work->gone = 0;
	if (!find(&run))
		return 0;
	if (is_copy(&run) || far_off(&run)) {
		leave(&run);
		return 0;
	}
	if (work->offset < work->end && in_sequence(&run))
		walk(&run);
	conclude(&run);
	return 0;
}
