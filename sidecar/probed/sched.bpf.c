/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Scheduling of watched processes. `switched` runs when a thread of theirs leaves its CPU (a perf
 * event of that thread alone, so nobody else's switch is looked at); `exited`, `executed` and
 * `oom_killed` run for everybody, seldom, and leave at once when it is nobody watched.
 *
 * Fields of kernel structs are read at offsets that user space took from the kernel's own BTF
 * (sched_layout.py): nothing here depends on a kernel's layout, and a part whose fields were not
 * found is off.
 */
#include "probe.h"
#include "sched_switch.h"

PROBE("perf_event")
int switched(void *ctx)
{
	struct layout *layout = layout_with(SWITCHES);
	__u64 ids = bpf_get_current_pid_tgid(), at = bpf_ktime_get_ns();
	__u32 tid = ids, slot = NONE;
	struct reading now = {};
	struct thread *then, first = {};
	struct process *process = layout ? find(layout, ids >> 32, &slot) : 0;
	int voluntary;

	if (!process || !take(layout, bpf_get_current_task(), &now))
		return 0;
	then = LOOKUP(threads, &tid);
	if (then && then->slot == slot && is_twin(then, &now))
		return 0;
	if (then && then->slot == slot && continues(then, &now)) {
		voluntary = now.voluntary != then->voluntary;
		go_on(process, then, &now, at);
	} else {
		voluntary = begin(process, &now);
		first.slot = slot;
		UPDATE(threads, &tid, &first);
		then = LOOKUP(threads, &tid);
		if (!then) {
			count(TABLE_FULL);
			return 0;
		}
	}
	then->at = at;
	then->run_delay = now.run_delay;
	then->ran = now.ran;
	then->voluntary = now.voluntary;
	then->involuntary = now.involuntary;
	then->kind = kind_of(&now, voluntary);
	return 0;
}

/* The status that wait(2) tells (kernel/exit.c, wait_task_zombie). */
static __always_inline __u32 status(struct layout *layout, __u64 task, __u64 signal)
{
	__u32 flags = 0, code = 0;
	__u64 leader = 0;

	READ(flags, signal, layout->signal_flags);
	if (flags & SIGNAL_GROUP_EXIT) {
		READ(code, signal, layout->group_exit_code);
		return code;
	}
	READ(leader, task, layout->group_leader);
	READ(code, leader, layout->exit_code);
	return code;
}

/* The slot of the process that made this one, if it is watched. */
static __always_inline __u32 parent_slot(struct layout *layout, __u64 task)
{
	__u64 parent = 0;
	__u32 tgid = 0, *slot;

	READ(parent, task, layout->real_parent);
	READ(tgid, parent, layout->tgid);
	slot = LOOKUP(tgids, &tgid);
	return slot ? *slot : NONE;
}

/* Before its pid can be used again. */
static __always_inline void forget(struct process *process, __u32 tgid)
{
	struct name name = {};

	name.inode = process->inode;
	name.tgid = process->ns_tgid;
	DELETE(tgids, &tgid);
	DELETE(names, &name);
}

/* The last time that a thread got a CPU is not followed by a switch that is seen. */
static __always_inline void finish(struct layout *layout, struct process *process, __u64 task,
				   __u32 tid, __u32 slot)
{
	struct thread *then = LOOKUP(threads, &tid);
	struct reading now = {};

	if (!(layout->parts & SWITCHES) || !take(layout, task, &now))
		return;
	if (then && then->slot == slot && continues(then, &now))
		observe(&process->waits, now.run_delay - then->run_delay);
	else if (now.times == 1)
		observe(&process->waits, now.run_delay);
	DELETE(threads, &tid);
}

PROBE("raw_tracepoint/sched_process_exit")
int exited(struct bpf_raw_tracepoint_args *ctx)
{
	struct layout *layout = layout_with(EXITS);
	__u64 ids = bpf_get_current_pid_tgid(), task = bpf_get_current_task(), signal = 0;
	__u32 tgid = ids >> 32, tid = ids, live = 0;
	struct record record = {};
	struct process *process;

	if (!layout)
		return 0;
	record.slot = NONE;
	process = find(layout, tgid, &record.slot);
	if (process)
		finish(layout, process, task, tid, record.slot);
	READ(signal, task, layout->signal);
	READ(live, signal, layout->live);
	if (live) /* other threads of it go on */
		return 0;
	record.kind = process ? EXIT : CHILD_EXIT;
	if (!process)
		record.slot = parent_slot(layout, task);
	if (record.slot == NONE)
		return 0;
	if (process)
		forget(process, tgid);
	record.tgid = tgid;
	record.code = status(layout, task, signal);
	bpf_get_current_comm(record.comm, sizeof(record.comm));
	tell(&record);
	return 0;
}

PROBE("raw_tracepoint/sched_process_exec")
int executed(struct bpf_raw_tracepoint_args *ctx)
{
	struct layout *layout = layout_with(0);
	struct record record = {};

	record.tgid = bpf_get_current_pid_tgid() >> 32;
	record.kind = EXEC;
	record.slot = NONE;
	if (!layout || !find(layout, record.tgid, &record.slot))
		return 0;
	bpf_get_current_comm(record.comm, sizeof(record.comm));
	tell(&record);
	return 0;
}

/* Its argument is the victim's pid, since Linux 6.8 its task: a kernel address has its upper bits
 * set, a pid has not. */
PROBE("raw_tracepoint/mark_victim")
int oom_killed(struct bpf_raw_tracepoint_args *ctx)
{
	struct layout *layout = layout_with(0);
	__u64 victim = ctx->args[0];
	struct record record = {};
	__u32 *slot;

	if (!layout)
		return 0;
	record.kind = OOM_KILL;
	record.tgid = victim;
	if (victim >> 32) {
		if (!(layout->parts & VICTIMS))
			return 0;
		READ(record.tgid, victim, layout->tgid);
		READ(record.comm, victim, layout->comm);
	}
	slot = LOOKUP(tgids, &record.tgid);
	record.slot = slot ? *slot : NONE;
	tell(&record);
	return 0;
}
