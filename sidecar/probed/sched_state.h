/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* What the programs of sched.bpf.c keep and tell. sched_layout.py and sched_state.py hold the same
 * layouts; a test compares them with the object's BTF. */
#ifndef SCHED_STATE_H
#define SCHED_STATE_H

#define NONE 0xffffffff /* no slot */
#define MAX_PROCESSES 128 /* twice what is watched at once: a slot rests before it is used again */
#define MAX_THREADS 16384
#define MAX_NAMESPACES 4
#define BUCKETS 24
#define BUCKET_MASK 31 /* the array has room for it, which spares the verifier a proof */
#define FIRST_SHIFT 10 /* the first bucket ends at 2^10 ns */

/* include/linux/sched.h and sched/signal.h; the same since 4.14. */
#define TASK_UNINTERRUPTIBLE 0x2
#define TASK_STOPPED 0x4
#define TASK_TRACED 0x8
#define TASK_NOLOAD 0x400
#define SIGNAL_GROUP_EXIT 0x4

enum part { SWITCHES = 1, EXITS = 2, VICTIMS = 4 };
enum off_cpu { SLEEP, BLOCKED, STOPPED, PREEMPTED };
enum kind { EXIT = 1, CHILD_EXIT, EXEC, OOM_KILL };
enum tally { LOST_RECORDS, TABLE_FULL, TALLIES };

struct namespace {
	__u64 device, inode;
};

/* Where fields lie, in bytes from the start of their struct, and the pid namespaces of what is
 * watched where its pids are not those of the first namespace. */
struct layout {
	__u32 parts; /* those whose fields were found */
	__u32 namespaces;
	__u32 run_delay, times, state, ran, voluntary, involuntary;
	__u32 signal, live, signal_flags, group_exit_code, exit_code, group_leader;
	__u32 real_parent, tgid, comm, pad;
	struct namespace namespace[MAX_NAMESPACES];
};

struct histogram {
	__u64 sum;
	__u64 counts[BUCKET_MASK + 1];
};

struct process {
	__u64 inode; /* of its pid namespace; 0: it goes by the first namespace's pid */
	__u32 ns_tgid, tgid; /* the pid it has there, and in the first one once it was seen */
	__u64 voluntary, involuntary, missed;
	struct histogram waits, sleep, blocked, stopped, preempted;
};

/* A thread at its last switch. */
struct thread {
	__u64 at, run_delay, ran, voluntary, involuntary;
	__u32 slot, kind;
};

/* The kernel's own figures of a thread. */
struct reading {
	__u64 run_delay, times, ran, voluntary, involuntary;
	__u32 state, pad;
};

struct name {
	__u64 inode;
	__u32 tgid, pad;
};

struct record {
	__u64 at;
	__u32 kind, slot, tgid, code;
	char comm[16];
};

struct tallies {
	__u64 counts[TALLIES];
};

ARRAY(layouts, struct layout, 1);
ARRAY(processes, struct process, MAX_PROCESSES);
SMALL_HASH(tgids, __u32, __u32, MAX_PROCESSES);
SMALL_HASH(names, struct name, __u32, MAX_PROCESSES);
LRU(threads, __u32, struct thread, MAX_THREADS);
PER_CPU(tallies, struct tallies);
RING(records, 65536);

/* Reads a field; what cannot be read stays as it is. */
#define READ(into, base, offset) \
	bpf_probe_read_kernel(&(into), sizeof(into), (void *)((base) + (offset)))

static __always_inline void count(__u32 which)
{
	__u32 zero = 0;
	struct tallies *sums = LOOKUP(tallies, &zero);

	if (sums)
		sums->counts[which]++;
}

static __always_inline void tell(struct record *record)
{
	record->at = bpf_ktime_get_ns();
	if (OUTPUT(records, record, sizeof(*record), 1 /* BPF_RB_NO_WAKEUP */))
		count(LOST_RECORDS);
}

/* The layout when these parts of it were found. */
static __always_inline struct layout *layout_with(__u32 parts)
{
	__u32 zero = 0;
	struct layout *layout = LOOKUP(layouts, &zero);

	if (!layout || (layout->parts & parts) != parts)
		return 0;
	OPAQUE(layout); /* else clang masks the pointer with the bit, which the verifier refuses */
	return layout;
}

/* The slot of the current process by the pid in its own namespace, remembered by its first one. */
static __always_inline __u32 by_name(struct layout *layout, __u32 tgid)
{
	struct bpf_pidns_info ids = {};
	struct name name = {};
	__u32 i, *known, slot;

	for (i = 0; i < MAX_NAMESPACES; i++) {
		if (i >= layout->namespaces)
			break;
		name.inode = layout->namespace[i].inode;
		if (bpf_get_ns_current_pid_tgid(layout->namespace[i].device, name.inode, &ids,
						sizeof(ids)))
			continue; /* it lives in another one */
		name.tgid = ids.tgid;
		known = LOOKUP(names, &name);
		if (!known)
			break;
		slot = *known;
		UPDATE(tgids, &tgid, &slot);
		return slot;
	}
	return NONE;
}

/* The current process, when it is watched. */
static __always_inline struct process *find(struct layout *layout, __u32 tgid, __u32 *slot)
{
	__u32 *known = LOOKUP(tgids, &tgid), index;
	struct process *process;

	index = known ? *known : by_name(layout, tgid);
	if (index == NONE)
		return 0;
	*slot = index;
	process = LOOKUP(processes, &index);
	if (process && process->tgid != tgid)
		process->tgid = tgid;
	return process;
}

/* The figures of a thread; 0 when they cannot be read. */
static __always_inline int take(struct layout *layout, __u64 task, struct reading *now)
{
	long failed = READ(now->run_delay, task, layout->run_delay);

	failed |= READ(now->times, task, layout->times);
	failed |= READ(now->ran, task, layout->ran);
	failed |= READ(now->voluntary, task, layout->voluntary);
	failed |= READ(now->involuntary, task, layout->involuntary);
	failed |= READ(now->state, task, layout->state);
	return !failed;
}

#endif
