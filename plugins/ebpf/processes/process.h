/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that were sampled recently: name, container, mappings and target. They are read from
 * /proc as soon as the kernel side reports them, so that one of a few milliseconds is known too. */
#pragma once

#include "ebpf/processes/known-cgroups.h"
#include "ebpf/processes/maps.h"
#include "ebpf/processes/target-match.h"
#include "ebpf/processes/procmap.h"
#include "bpfwire/sampler.h"

#include "base/index.h"
#include "proc/container.h"
#include "proc/process.h"

/* What language runtimes know of it (unwinding/runtimes.h). */
struct process_runtimes {
	uint32_t asked;      /* bit n: that in slot n was asked for claims */
	bool claimed;        /* some have claimed code of it */
	bool retry;          /* some claim was too early, or found no room */
	int64_t due_ns;      /* of the retry, CLOCK_MONOTONIC */
	uint32_t n_retries;  /* so far, */
	uint64_t generation; /* of the program with this generation */
	uint64_t watched;    /* the one whose program was watched last */
};

struct process {
	struct sampler_process_key key;
	uint64_t cgroup;
	uint32_t root; /* selected process it descends from, else 0 */
	bool kthread;
	bool read;             /* /proc was asked; */
	bool known;            /* and answered: the container is known, or that there is none */
	bool stale;            /* mappings have changed, or were never read */
	bool missing;          /* they were to be read, and it was gone */
	bool speaks;           /* by its mappings for all of its generation */
	bool lacks_jit_source; /* it has JIT-compiled code without symbols */
	uint32_t own_pid;      /* jit_source_process's */
	uint32_t idle_intervals;
	uint32_t position;
	char comm[SAMPLER_COMM_SIZE + 1];
	char container[CONTAINER_ID_MAX];
	const struct match *match; /* NULL: not to be profiled */
	uint64_t match_generation; /* for which `match` holds */
	struct procmap_pace pace;
	struct process_runtimes runtimes;
	struct mapset *maps;
	const struct mapset *stored; /* those that the unwind store has */
	uint64_t tried, looked;      /* the event intake's own, 0 at first */
	uint64_t settled;            /* likewise: what its mappings said when its looks ended */
	/* CLOCK_MONOTONIC: they were read last, and with all files opened; 0: never. */
	int64_t mapped_ns, opened_ns;
	uint64_t generation; /* unwind_generation, as of the last report */
};

struct processes {
	VEC(struct process *) all;
	struct index index;
	struct index generations; /* one process for each generation: who knows most of it */
	struct mapped_files *files;
	struct known_cgroups cgroups;
	struct procmap procmap;
	struct proc_info info; /* reused */
	struct buf text;
	int proc; /* descriptor of /proc */
};

/* `files` is borrowed. 0 or a negative errno. */
int processes_init(struct processes *t, struct mapped_files *files);
void processes_fini(struct processes *t);

/* The process of a key, or NULL. */
struct process *processes_find(const struct processes *t, const struct sampler_process_key *key);
/* The process of a key; a new one if need be. NULL when memory is short. */
struct process *processes_get(struct processes *t, const struct sampler_process_key *key);

/* Takes over what the kernel side says; its mappings are stale then. NULL when memory is short. */
struct process *processes_note(struct processes *t, const struct sampler_process *record);

/* Reads name and container, once. Costs ~10 system calls, and none where the kernel side has told
 * the name, and the cgroup is known. */
void process_identify(struct processes *t, struct process *p);
/* It was seen in that cgroup; in another one than before, it is identified anew. */
void process_enter_cgroup(struct process *p, uint64_t cgroup);

/* Reads the mappings if they are stale; the former set is kept behind the new one. Of a process
 * that was gone before that, or before all its files were opened, they are those of another process
 * with its generation, if one is known; and where it is another program by now than the one
 * reported, such ones stand behind its own. Costs one read of maps and an open per executable
 * mapping. */
void process_map(struct processes *t, struct process *p);

/* The same for a process that has begun, or had all of its files opened, a moment ago: a file that
 * is where it was is taken for the same one, without a look. Later that does not hold: a library
 * that is built anew and loaded again may have its inode and its address. False: it is gone. Costs
 * a question for each mapping, and where one is new a read of maps and an open for each new one. */
bool process_look(struct processes *t, struct process *p);

/* Its newest mappings of that generation, until the interval ends; NULL: unknown. */
const struct mapset *process_maps(const struct process *p, uint64_t generation);

/* The parent of a process whose mappings, as reported, are not all known, by the key that the
 * kernel side gives, if it lives and has the same generation: who was only forked has what its
 * parent has mapped, and the parent is there to be asked. Else NULL. One read of its stat. */
struct process *processes_parent(struct processes *t, const struct process *p,
				 const struct sampler_process_key *key);

/* The same from what the kernel has sent of it, and from /proc only where a file is new. */
void process_take_maps(struct processes *t, struct process *p, const struct sampler_mapped *mapped);

/* Ends an interval: looks for what tells of compiled code, where that may still come; forgets
 * former mapping sets, and processes that were not sampled in it and have exited, or were not
 * sampled for `keep` intervals, calling `gone` for each. One system call per process not sampled,
 * ten per one that compiles untold. */
void processes_age(struct processes *t, uint32_t keep,
		   void (*gone)(void *context, const struct process *p), void *context);
