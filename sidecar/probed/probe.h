/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The words in which a probe is written, so that one source serves both loaders: clang + libbpf
 * (objects built ahead) and BCC (compiled on the machine). BCC defines BCC_SEC; its 0.26 cannot
 * load subprograms, so there a callback of bpf_loop becomes the body of a bounded loop.
 *
 * Only helpers and struct __sk_buff are used, no kernel type (fields of others are read at offsets
 * that user space found): nothing here depends on a kernel's layout or on the machine, and one
 * little-endian object serves x86-64 and arm64.
 */
#ifndef PROBE_H
#define PROBE_H

#ifdef BCC_SEC

#include <uapi/linux/bpf.h>

#define HASH(name, key_t, value_t, max) \
	BPF_F_TABLE("hash", key_t, value_t, name, max, BPF_F_NO_PREALLOC)
#define SMALL_HASH(name, key_t, value_t, max) BPF_TABLE("hash", key_t, value_t, name, max)
#define LRU(name, key_t, value_t, max) BPF_TABLE("lru_hash", key_t, value_t, name, max)
#define ARRAY(name, value_t, max) BPF_TABLE("array", __u32, value_t, name, max)
#define PER_CPU(name, value_t) BPF_TABLE("percpu_array", __u32, value_t, name, 1)
#define ONE(name, value_t) BPF_TABLE("array", __u32, value_t, name, 1)
#define RING(name, bytes) BPF_RINGBUF_OUTPUT(name, (bytes) / 4096)
/* LOOKUP(map, key) and the like are put as map.lookup(key) by loaders/bcc.py before compilation:
 * BCC rewrites such calls, but not inside a macro. */
#define PROBE(section)
#define PROGRAMS(name, max) BPF_PROG_ARRAY(name, max)
#define SUBPROGRAM static __always_inline

#else

#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define MAP_(map_type, name, key_t, value_t, max, extra) \
	struct { \
		__uint(type, map_type); \
		__type(key, key_t); \
		__type(value, value_t); \
		__uint(max_entries, max); \
		__uint(map_flags, extra); \
	} name SEC(".maps")
#define HASH(name, key_t, value_t, max) \
	MAP_(BPF_MAP_TYPE_HASH, name, key_t, value_t, max, BPF_F_NO_PREALLOC)
#define SMALL_HASH(name, key_t, value_t, max) \
	MAP_(BPF_MAP_TYPE_HASH, name, key_t, value_t, max, 0)
#define LRU(name, key_t, value_t, max) MAP_(BPF_MAP_TYPE_LRU_HASH, name, key_t, value_t, max, 0)
#define ARRAY(name, value_t, max) MAP_(BPF_MAP_TYPE_ARRAY, name, __u32, value_t, max, 0)
#define PER_CPU(name, value_t) MAP_(BPF_MAP_TYPE_PERCPU_ARRAY, name, __u32, value_t, 1, 0)
#define ONE(name, value_t) MAP_(BPF_MAP_TYPE_ARRAY, name, __u32, value_t, 1, 0)
#define RING(name, bytes) \
	struct { \
		__uint(type, BPF_MAP_TYPE_RINGBUF); \
		__uint(max_entries, bytes); \
	} name SEC(".maps")
#define LOOKUP(map, key) bpf_map_lookup_elem(&map, key)
#define UPDATE(map, key, value) bpf_map_update_elem(&map, key, value, BPF_ANY)
#define INSERT(map, key, value) bpf_map_update_elem(&map, key, value, BPF_NOEXIST)
#define DELETE(map, key) bpf_map_delete_elem(&map, key)
#define OUTPUT(ring, data, size, flags) bpf_ringbuf_output(&ring, data, size, flags)
#define PROBE(section) SEC(section)
/* A function of its own for the verifier: its paths do not multiply with the caller's. */
#define SUBPROGRAM static __attribute__((noinline, unused))

char LICENSE[] SEC("license") = "GPL";

#endif

/* Makes clang forget what it holds of memory: unrolled states then differ in the counter only. */
#define FORGET() asm volatile("" ::: "memory")

/* Reads memory anew: not what another CPU has changed since, and not a constant that clang knows,
 * which the verifier would hold against the same instruction's other paths without CAP_PERFMON. */
#define RELOADED(field) (*(volatile __typeof__(field) *)&(field))

/* Keeps clang from proving a bound and then dropping the check that the verifier needs. */
#define OPAQUE(x) asm volatile("" : "+r"(x))

#endif
