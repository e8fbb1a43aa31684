/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * From a descriptor of the running process to its TCP connection. The kernel's types are declared
 * here with the few members that are read; libbpf puts the running kernel's offsets in.
 */
#ifndef WIRE_TLS_JOIN_H
#define WIRE_TLS_JOIN_H

#include "wire_tls_state.h"
#include <bpf/bpf_core_read.h>

#define KERNEL_TYPE __attribute__((preserve_access_index))
#define S_IFMT 0170000
#define S_IFSOCK 0140000
#define AF_INET 2
#define AF_INET6 10
#define TCP_CLOSE 7
#define TCP_CLOSE_WAIT 8
#define TCP_LAST_ACK 9

struct inode {
	unsigned short i_mode;
} KERNEL_TYPE;
struct file {
	struct inode *f_inode;
	void *private_data;
} KERNEL_TYPE;
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
} KERNEL_TYPE;
struct files_struct {
	struct fdtable *fdt;
} KERNEL_TYPE;
struct task_struct {
	struct files_struct *files;
} KERNEL_TYPE;
struct in6_addr {
	__u8 bytes[16]; /* a union in the kernel: only its address is taken */
};
struct sock_common {
	unsigned short skc_family;
	volatile unsigned char skc_state;
	__u16 skc_dport, skc_num;
	__u32 skc_daddr, skc_rcv_saddr;
	struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr;
} KERNEL_TYPE;
struct sock {
	struct sock_common __sk_common;
} KERNEL_TYPE;
struct socket {
	struct sock *sk;
} KERNEL_TYPE;

/* The socket behind a descriptor; 0 when it is none. Every step may read what another thread is
 * changing: the reads fail or give a wrong socket, whose ports are then not the session's. */
static __always_inline struct sock *socket_of(__u32 descriptor)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **files = BPF_CORE_READ(table, fd), *file = 0;
	struct socket *socket;

	if (descriptor >= BPF_CORE_READ(table, max_fds) ||
	    bpf_probe_read_kernel(&file, sizeof(file), files + descriptor) < 0 || !file)
		return 0;
	if ((BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) != S_IFSOCK)
		return 0;
	socket = BPF_CORE_READ(file, private_data);
	return BPF_CORE_READ(socket, sk);
}

/* IPv4 in IPv6's clothes, as a socket for both has it. */
static __always_inline int is_mapped(const __u8 address[16])
{
	__u8 differs = (address[10] ^ 0xff) | (address[11] ^ 0xff);

#pragma unroll
	for (int i = 0; i < 10; i++)
		differs |= address[i];
	return !differs;
}

struct ends {
	__u8 here[16], there[16];
	__u16 port_here, port_there;
	__u8 ipv6, state;
};

static __always_inline int read_ends(__u32 descriptor, struct ends *ends)
{
	struct sock *sk = socket_of(descriptor);
	__u16 family = sk ? BPF_CORE_READ(sk, __sk_common.skc_family) : 0;

	ends->ipv6 = 0;
	if (family == AF_INET6 && bpf_core_field_exists(sk->__sk_common.skc_v6_daddr)) {
		BPF_CORE_READ_INTO(&ends->here, sk, __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&ends->there, sk, __sk_common.skc_v6_daddr);
		ends->ipv6 = !is_mapped(ends->there);
	}
	if (family == AF_INET || (family == AF_INET6 && !ends->ipv6)) {
		__builtin_memset(ends->here, 0, 32);
		BPF_CORE_READ_INTO((__u32 *)ends->here, sk, __sk_common.skc_rcv_saddr);
		BPF_CORE_READ_INTO((__u32 *)ends->there, sk, __sk_common.skc_daddr);
	} else if (!ends->ipv6) {
		return 0;
	}
	ends->port_here = BPF_CORE_READ(sk, __sk_common.skc_num);
	ends->port_there = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
	ends->state = BPF_CORE_READ(sk, __sk_common.skc_state);
	return 1;
}

/* Both ends on one address: the connection does not leave the machine. */
static __always_inline int within_host(struct ends *ends)
{
	__u64 *a = (__u64 *)ends->here, *b = (__u64 *)ends->there;

	return a[0] == b[0] && a[1] == b[1];
}

/* Learns a session's connection. Asked at its first request: a client may be given its socket
 * before that is connected. */
SUBPROGRAM int join(struct session *session)
{
	struct ends ends __attribute__((aligned(8))) = {};
	int serves = session->role == SERVER;

	session->joined = NO_SOCKET;
	session->flags = TLS;
	if (!session->descriptor || !read_ends(session->descriptor - 1, &ends) ||
	    !ends.port_here || !ends.port_there)
		return 0;
	session->joined = JOINED;
	session->server_port = serves ? ends.port_here : ends.port_there;
	session->client_port = serves ? ends.port_there : ends.port_here;
	__builtin_memcpy(session->server, serves ? ends.here : ends.there, 16);
	if (ends.ipv6)
		session->flags |= IPV6;
	/* Its server's side is followed: one request is one record. */
	if (!serves && within_host(&ends) && LOOKUP(served, &session->server_port))
		session->ignored = 1;
	return 1;
}

/* Whether the other side was the first to close or reset the TCP connection. A reset socket has no
 * port any more; unless the descriptor is surely in use it may be another's, too. */
SUBPROGRAM int peer_left(struct session *session, int in_use)
{
	struct ends ends __attribute__((aligned(8))) = {};
	__u16 own = session->role == SERVER ? session->server_port : session->client_port;

	if (session->joined != JOINED || !read_ends(session->descriptor - 1, &ends))
		return 0;
	if (ends.port_here != own && (ends.port_here || !in_use))
		return 0;
	return ends.state == TCP_CLOSE || ends.state == TCP_CLOSE_WAIT || ends.state == TCP_LAST_ACK;
}

#endif
