/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * What the wire tap keeps: one connection's state, the record it emits, the maps. All parser
 * state lives in map memory, not in registers: the verifier's states merge after every byte.
 */
#ifndef WIRE_STATE_H
#define WIRE_STATE_H

#include "probe.h"

#ifndef MAX_CONNECTIONS
#define MAX_CONNECTIONS 16384 /* wire_table.py makes room before it is full */
#endif
#define MAX_NOTES 16384
#define RING_BYTES (1 << 19) /* 550 records between two drains */
#define BLOCK 512 /* bytes copied out of a packet at a time; a power of two */
#define GAP_BUCKETS 322 /* sidecar/gaps.py */
#define UNTIL_CLOSE (~0ULL)
#define WINDOW (1 << 24) /* bytes: no receiver by default takes half as much */
#define PIECE 512 /* bytes of a request's body hashed at a time; a power of two */
#define HANDSHAKE_BUCKETS 26
#define WAITING 8 /* pipelined requests whose start is kept; a power of two */

/* One request. The layout is frames._RECORD; all times are CLOCK_MONOTONIC nanoseconds. */
struct wire_record {
	__u64 start, byte0, event0, token0, token_last, end_at, largest_gap;
	__u64 request_bytes, response_bytes;
	__u32 events, token_events;
	__u16 status, port, client_port;
	__u8 end, flags;
	__u8 address[16]; /* of the server; IPv4 in the first four */
	char method[8], path[64], traceparent[56], request_id[40];
	__u16 gaps[GAP_BUCKETS];
	__u32 unclassified; /* events too long to be told apart: see wire_sse.h */
	__u64 body_key, response_key; /* 0: none. See wire_digest.h and wire_json.h */
};

enum record_end { OPEN, COMPLETE, CLIENT_GONE, SERVER_CLOSED, ERROR_EVENT, LOST };
enum record_flag { IPV6 = 1, STREAMED = 2, ENCODED = 4, RESYNCED = 8, TLS = 16 };

/* The first names of frames.Counters, in its order. */
enum counter {
	PACKETS, REQUESTS, EVENTS, LOST_RECORDS, TABLE_FULL, NOT_HTTP, BLIND_TLS, BLIND_HTTP2,
	RESYNCS, PIPELINED, CONTENDED, UNCLASSIFIED, FOLDED /* by wire_table.py */, COUNTERS
};

struct key {
	__u8 client[16], server[16];
	__u16 client_port, server_port; /* host order */
} __attribute__((aligned(4)));

enum phase {
	MESSAGE, METHOD, PATH, VERSION, STATUS, CODE, REASON, NAME, VALUE, /* head */
	SIZE, EXTENSION, AFTER_CHUNK, TRAILER, /* chunk framing */
	BODY,
	ASTRAY /* requests only: bytes were missed, wait for a segment that starts with a method */
};

/* Bits of flow.framing, told by the head. LOOSE: the framing is no longer trusted. */
enum framing {
	HAS_LENGTH = 1, CHUNKED = 2, IS_STREAM = 4, IS_ENCODED = 8, LOOSE = 16,
	CONFLICT = 32, /* lengths that are none, or not the same */
	UNHEARD = 64 /* of an answer: nothing of it came since the client said FIN */
};

/* One direction of a connection. */
struct flow {
	__u64 left; /* body bytes before the next framing byte, or UNTIL_CLOSE; in a head its length */
	__u64 length; /* content-length, chunk size or status code while it is read */
	__u64 window; /* the last 8 bytes of a method, version or header value, in lower case */
	__u32 next; /* the sequence number expected next */
	__u32 stray; /* where a stream far outside the window would go on */
	__u32 hash; /* of the header's name so far; in a path its form */
	__u8 phase, header, framing, at; /* at: position in the field, saturates */
	__u8 fold; /* at of the last value, which a folded line continues */
	__u8 zero_window; /* its receiver said that it takes no more: see wire_health.h */
	__u8 pad[2];
	__u32 sight; /* where its bytes are seen first */
	__u32 hole, hole_end; /* what was missed last */
	__u64 hole_at;
};

/* Where the body's scanner stands: see wire_sse.h. */
struct sse {
	__u64 tail; /* the last bytes of a type's name */
	__u32 hash, key;
	__u8 line, json, last, in_event; /* last: the last line end's byte */
	__u8 begun; /* a line has ended: no byte order mark can come */
	__u8 told; /* this event's text was found */
	__u8 quiet; /* the event repeats what was told before */
	__u8 depth; /* of objects */
	__u8 nested; /* within the object in whose "id" an API names its answer */
	__u8 pad;
	__u16 seen; /* bytes of this event's data that were lexed */
	__u16 text_at, text_end; /* where in the block its text stood; text_end 0: not known */
};

/* What the last event with text was like, of which no byte is kept: see wire_shape.h. */
struct shape {
	__u64 before, behind; /* keyed hashes of all that stood before the text, and behind it */
	__u16 before_size, behind_size; /* bytes; before_size 0: none is known */
	__u8 last; /* sse.last behind the event */
	__u8 hit; /* another event was like it */
	__u8 wait; /* events that are not worth learning from */
	__u8 patience; /* how many will be the next time that it was of no use */
};

/* Where the hash of a request's body stands: see wire_digest.h. */
struct digest {
	__u64 first, second; /* sums of words times secret numbers */
	__u64 at; /* bytes of body so far, chunk framing taken off */
	__u8 torn; /* bytes were missed */
	__u8 whole; /* the body has ended */
	__u8 pad[6];
};

struct conn {
	struct wire_record rec; /* first: user space reads it and the five fields behind it */
	__u64 touched; /* the last payload */
	__u64 client_fin; /* when the client said that it sends no more */
	__u32 lock; /* held by the CPU that reads a packet of this connection: see wire_lock.h */
	__u8 open; /* 0 no request, NAMED once its first line is known to be HTTP */
	__u8 pending; /* pipelined requests behind the one in rec */
	__u8 captured; /* the head being read belongs to rec, not to a pipelined request */
	__u8 unsure; /* taken up in mid-stream: its first line must leave no doubt */
	__u32 gone; /* no longer in the table */
	__u8 head_request, server_fin, done, error;
	__u8 first, heads; /* of waiting: the oldest one's place; a bit for each HEAD */
	__u8 fast_open; /* came with the SYN: the server's number is not known yet */
	__u8 pad;
	__u32 isn; /* the client's SYN, to know its copy */
	__u32 tokens, fresh_events; /* of this packet, until settle() */
	__u64 waiting[WAITING]; /* when pipelined requests began */
	struct key key; /* whose it is: memory of a deleted connection is used again at once */
	__u32 vague; /* unclassified events of this packet, until settle() */
	__u64 salt; /* of the secret, for the answer's id */
	struct flow flows[2];
	struct sse sse;
	struct digest digest;
	struct shape shape;
};

#define NAMED 2
#define REQUEST 0
#define RESPONSE 1

/* What is known of a connection that has no struct conn. */
enum note_state { OPENING = 1, IGNORED, CLOSED };
struct note {
	__u32 next; /* the client's next sequence number */
	__u32 state;
	__u64 at; /* of the SYN; 0 once it is answered */
	__u32 sight; /* where the SYN was seen first */
	__u32 pad;
};

/* Why a run over a packet stopped. */
enum verdict {
	GO_ON, ENDED, IS_TLS, HTTP2, GARBAGE, UPGRADED, DOUBT,
	REPLACED, WAITS /* from here on the byte is not taken: it is the next run's first */
};

struct search {
	__u64 rest, exponent, bucket;
};

/* One packet being read. Scalars live here and not on the stack, where the verifier would follow
 * their values. Softirqs are off while a socket filter runs, so nothing else uses this CPU's. */
struct work {
	__u64 now;
	struct search search;
	__u32 start, offset, end; /* of the payload, in the packet */
	__u32 base, loaded; /* what block holds */
	__u32 used;
	__u32 tried; /* where the packet was last compared with the shape of the event before */
	__u32 dirty; /* bytes of block to wipe at the end of the packet */
	__u32 seq, ack; /* of the first payload byte */
	__u8 direction, verdict, tcp_flags;
	__u8 gone; /* the connection was given up: its memory may be another's by now */
	__u8 held; /* the connection's lock */
	struct key key;
	__u8 flags; /* of the record: IPV6 */
	__u8 next_header;
	__u16 port, window; /* of the server; as the sender says, not scaled */
	__u32 fresh_events, tokens, vague; /* of the connection, before the event that is learnt from */
	__u32 learning; /* its size; 0: there is none */
	__u8 done, error;
	__u32 place, span; /* of a part of block that is looked at */
	__u32 last, surplus; /* where its last bytes are; bits of them that are another's */
	__u8 block[BLOCK];
	__u64 words[2 * PIECE / 8]; /* of a request's body; all zero between two packets */
};

/* What hides the hashes' input. User space writes it, random, before the filter is attached. */
struct secret {
	__u64 first[PIECE / 8], second[PIECE / 8];
	__u64 salt[4];
};

/* TCP of one server port; the names of TcpCounts in tcp_counts.py, in its order. */
enum health {
	CONNECTS, CONNECT_FAILURES, SYN_RETRANSMITS, RETRANSMITS_SENT, RETRANSMITS_RECEIVED, REORDERED,
	RESETS_BY_CLIENT, RESETS_BY_SERVER, ZERO_WINDOWS_BY_CLIENT, ZERO_WINDOWS_BY_SERVER,
	HANDSHAKE_NS, HEALTHS
};
struct tcp_counts {
	__u64 count[HEALTHS];
	__u64 handshakes[HANDSHAKE_BUCKETS]; /* i: below 2^i microseconds, the last one all others */
};

struct tally {
	__u64 count[COUNTERS];
};

/* Where the bytes lie: in a packet, unless a probe has said otherwise before. */
#ifndef LOAD
#define SOURCE struct __sk_buff *skb
#define LOAD(run, offset, to, size) bpf_skb_load_bytes((run)->skb, offset, to, size)
#define LIKE_THE_LAST(run) like_the_last((run)->skb, (run)->conn, 0)
#define SIGHT(run) sight_of((run)->skb)
#define SEGMENTS(run) ((run)->skb->gso_segs)
#define LEAVES(run) ((run)->skb->pkt_type == OUTGOING)
#endif

/* The pointers of one run, on the stack. */
struct run {
	SOURCE;
	struct work *work;
	struct conn *conn;
};

/* The value is not read: being in the map means being watched. Room for every client's most. */
SMALL_HASH(ports, __u16, __u8, 1024);
HASH(conns, struct key, struct conn, MAX_CONNECTIONS);
LRU(notes, struct key, struct note, MAX_NOTES);
PER_CPU(works, struct work);
PER_CPU(blanks, struct conn); /* what a new connection starts as, but for what adopt() sets */
PER_CPU(tallies, struct tally);
RING(records, RING_BYTES);
ONE(secrets, struct secret);
SMALL_HASH(healths, __u16, struct tcp_counts, 1024); /* user space makes the entries */

/* The key of a map of one entry. Not on the stack, where each write costs a barrier when the program
 * was loaded without CAP_PERFMON. BCC knows no data of a program's own. */
#ifdef BCC_SEC
#define SOLE ((__u32){0})
#else
static const __u32 SOLE;
#endif

static __always_inline void count(enum counter which, __u64 by)
{
	struct tally *tally = LOOKUP(tallies, &SOLE);

	if (tally)
		tally->count[which] += by;
}

#endif
