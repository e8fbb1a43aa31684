/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * From a packet to a TCP segment of a watched port: addresses, direction, sequence numbers and
 * where the payload lies. The packet starts at its network header (SOCK_DGRAM).
 */
#ifndef WIRE_SEGMENT_H
#define WIRE_SEGMENT_H

#include "wire_state.h"

#define TCP 6
#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define ACK 0x10
#define VLAN_Q 0x8100
#define VLAN_AD 0x88a8

static __always_inline __u32 be16(const __u8 *bytes)
{
	return (__u32)bytes[0] << 8 | bytes[1];
}

static __always_inline __u32 be32(const __u8 *bytes)
{
	return be16(bytes) << 16 | be16(bytes + 2);
}

/* The same where the bytes are aligned, as those of a header are: one load. */
static __always_inline __u32 net16(const __u8 *bytes)
{
	return __builtin_bswap16(*(const __u16 *)bytes);
}

static __always_inline __u32 net32(const __u8 *bytes)
{
	return __builtin_bswap32(*(const __u32 *)bytes);
}

/* Moves work->offset behind VLAN tags that the device did not strip; says what follows them. */
static __always_inline __u32 skip_vlan(struct __sk_buff *skb, struct work *work)
{
	__u32 protocol = (skb->protocol & 0xff) << 8 | (skb->protocol >> 8 & 0xff);
	__u8 tag[4];

#pragma unroll
	for (int i = 0; i < 2; i++) {
		if (protocol != VLAN_Q && protocol != VLAN_AD)
			break;
		if (bpf_skb_load_bytes(skb, work->offset, tag, sizeof(tag)) < 0)
			return 0;
		protocol = be16(tag + 2);
		work->offset += sizeof(tag);
	}
	return protocol;
}

/* The super packets of TCP segmentation have length 0 or more; small ones padding behind it. */
static __always_inline void cut_padding(struct work *work, __u32 length)
{
	if (length && work->offset + length < work->end)
		work->end = work->offset + length;
}

/* Whether one of the ports is watched, and which way the segment goes. The lower one is tried first:
 * it is nearly always the server's, and of two that are watched the same in both directions. */
static __always_inline int watched(struct work *work, __u16 from, __u16 to)
{
	__u16 lower = from < to ? from : to;

	work->port = lower;
	work->direction = from < to ? RESPONSE : REQUEST;
	if (LOOKUP(ports, &work->port))
		return 1;
	work->port = from ^ to ^ lower;
	work->direction = from < to ? REQUEST : RESPONSE;
	return LOOKUP(ports, &work->port) != 0;
}

/* The rest of a TCP header, which lies at work->offset. */
static __always_inline void keep_tcp(struct work *work, const __u8 tcp[20])
{
	work->key.client_port = net16(tcp) ^ net16(tcp + 2) ^ work->port;
	work->key.server_port = work->port;
	work->window = net16(tcp + 14);
	work->tcp_flags = tcp[13];
	work->seq = net32(tcp + 4);
	work->ack = net32(tcp + 8);
	work->offset += (tcp[12] >> 4) * 4;
	if (work->offset > work->end)
		work->offset = work->end;
}

/* Reads the TCP header at work->offset; 0 unless one of the ports is watched. */
SUBPROGRAM int read_tcp(struct __sk_buff *skb, struct work *work)
{
	__u8 tcp[20] __attribute__((aligned(4)));

	if (bpf_skb_load_bytes(skb, work->offset, tcp, sizeof(tcp)) < 0 ||
	    !watched(work, net16(tcp), net16(tcp + 2)))
		return 0;
	keep_tcp(work, tcp);
	return 1;
}

static __always_inline void keep_ipv4(struct work *work, __u32 source, __u32 target)
{
	/* Values and not places: a choice of address needs CAP_PERFMON. */
	__u32 client = work->direction == REQUEST ? source : target;
	__u32 server = source ^ target ^ client;

	__builtin_memcpy(work->key.client, &client, 4);
	__builtin_memset(work->key.client + 4, 0, 12);
	__builtin_memcpy(work->key.server, &server, 4);
	__builtin_memset(work->key.server + 4, 0, 12);
	work->flags = 0;
}

/* TCP in IPv4: both headers at once where the first has no options. */
SUBPROGRAM int read_ipv4(struct __sk_buff *skb, struct work *work)
{
	__u8 ip[40] __attribute__((aligned(4)));

	if (bpf_skb_load_bytes(skb, work->offset, ip, sizeof(ip)) < 0 || ip[0] >> 4 != 4)
		return 0; /* too short for TCP */
	if (ip[9] != TCP || (net16(ip + 6) & 0x1fff)) /* a later fragment has no TCP header */
		return 0;
	if (ip[0] == 0x45 && !watched(work, net16(ip + 20), net16(ip + 22)))
		return 0;
	cut_padding(work, net16(ip + 2));
	work->offset += (ip[0] & 15) * 4;
	if (ip[0] == 0x45)
		keep_tcp(work, ip + 20);
	else if (!read_tcp(skb, work))
		return 0;
	keep_ipv4(work, *(__u32 *)(ip + 12), *(__u32 *)(ip + 16));
	return 1;
}

static __always_inline void keep_ipv6(struct work *work, const __u32 source[4],
                                      const __u32 target[4])
{
	__u32 *clients = (__u32 *)work->key.client, *servers = (__u32 *)work->key.server;

#pragma unroll
	for (int i = 0; i < 4; i++) {
		clients[i] = work->direction == REQUEST ? source[i] : target[i];
		servers[i] = source[i] ^ target[i] ^ clients[i];
	}
	work->flags = IPV6;
}

/* The same for IPv6: behind up to three extension headers, the jumbo option among them. */
SUBPROGRAM int read_ipv6(struct __sk_buff *skb, struct work *work)
{
	__u8 ip[40] __attribute__((aligned(4))), extension[8];

	if (bpf_skb_load_bytes(skb, work->offset, ip, sizeof(ip)) < 0 || ip[0] >> 4 != 6)
		return 0;
	if (be16(ip + 4))
		cut_padding(work, be16(ip + 4) + sizeof(ip));
	work->next_header = ip[6];
	work->offset += sizeof(ip);
#pragma unroll
	for (int i = 0; i < 3; i++) {
		__u8 next = *(volatile __u8 *)&work->next_header;

		if (next != 0 && next != 43 && next != 60) /* hop by hop, routing, destination */
			break;
		if (bpf_skb_load_bytes(skb, work->offset, extension, sizeof(extension)) < 0)
			return 0;
		work->next_header = extension[0];
		work->offset += 8 + extension[1] * 8;
	}
	if (work->next_header != TCP || !read_tcp(skb, work))
		return 0;
	keep_ipv6(work, (__u32 *)(ip + 8), (__u32 *)(ip + 24));
	return 1;
}

/* Fills work for a TCP segment of a watched port; 0 for any other packet. */
static __always_inline int read_segment(struct __sk_buff *skb, struct work *work)
{
	__u32 protocol;

	work->offset = 0;
	work->end = skb->len;
	protocol = skip_vlan(skb, work);
	if (protocol == 0x0800)
		return read_ipv4(skb, work);
	return protocol == 0x86dd && read_ipv6(skb, work);
}

#endif
