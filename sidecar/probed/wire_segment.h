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

/* Moves work->offset behind an IPv4 header; 0 unless TCP follows. */
SUBPROGRAM int read_ipv4(struct __sk_buff *skb, struct work *work)
{
	__u8 ip[20];

	if (bpf_skb_load_bytes(skb, work->offset, ip, sizeof(ip)) < 0 || ip[0] >> 4 != 4)
		return 0;
	if (ip[9] != TCP || (be16(ip + 6) & 0x1fff)) /* a later fragment has no TCP header */
		return 0;
	cut_padding(work, be16(ip + 2));
	__builtin_memset(work->source, 0, 16);
	__builtin_memset(work->target, 0, 16);
	__builtin_memcpy(work->source, ip + 12, 4);
	__builtin_memcpy(work->target, ip + 16, 4);
	work->offset += (ip[0] & 15) * 4;
	work->flags = 0;
	return 1;
}

/* The same for IPv6: behind up to three extension headers, the jumbo option among them. */
SUBPROGRAM int read_ipv6(struct __sk_buff *skb, struct work *work)
{
	__u8 ip[40], extension[8];

	if (bpf_skb_load_bytes(skb, work->offset, ip, sizeof(ip)) < 0 || ip[0] >> 4 != 6)
		return 0;
	if (be16(ip + 4))
		cut_padding(work, be16(ip + 4) + sizeof(ip));
	__builtin_memcpy(work->source, ip + 8, 16);
	__builtin_memcpy(work->target, ip + 24, 16);
	work->next_header = ip[6];
	work->offset += sizeof(ip);
	work->flags = IPV6;
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
	return work->next_header == TCP;
}

static __always_inline void keep_key(struct key *key, __u8 client[16], __u8 server[16],
                                     __u16 client_port, __u16 server_port)
{
	__builtin_memcpy(key->client, client, 16);
	__builtin_memcpy(key->server, server, 16);
	key->client_port = client_port;
	key->server_port = server_port;
}

/* Reads the TCP header at work->offset; 0 unless one of the ports is watched. */
SUBPROGRAM int read_tcp(struct __sk_buff *skb, struct work *work)
{
	__u8 tcp[20];
	__u16 from, to;

	if (bpf_skb_load_bytes(skb, work->offset, tcp, sizeof(tcp)) < 0)
		return 0;
	from = be16(tcp);
	to = be16(tcp + 2);
	if (LOOKUP(ports, &to)) {
		work->direction = REQUEST;
		keep_key(&work->key, work->source, work->target, from, to);
	} else if (LOOKUP(ports, &from)) {
		work->direction = RESPONSE;
		keep_key(&work->key, work->target, work->source, to, from);
	} else {
		return 0;
	}
	work->port = work->key.server_port;
	work->window = be16(tcp + 14);
	work->tcp_flags = tcp[13];
	work->seq = be32(tcp + 4);
	work->ack = be32(tcp + 8);
	work->offset += (tcp[12] >> 4) * 4;
	if (work->offset > work->end)
		work->offset = work->end;
	return 1;
}

/* Fills work for a TCP segment of a watched port; 0 for any other packet. */
static __always_inline int read_segment(struct __sk_buff *skb, struct work *work)
{
	__u32 protocol;

	work->offset = 0;
	work->end = skb->len;
	protocol = skip_vlan(skb, work);
	if (protocol == 0x0800) {
		if (!read_ipv4(skb, work))
			return 0;
	} else if (protocol != 0x86dd || !read_ipv6(skb, work)) {
		return 0;
	}
	return read_tcp(skb, work);
}

#endif
