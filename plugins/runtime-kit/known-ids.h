/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which ids a BPF program has reported: sets of eight, each a cache line of an array map. A hash
 * that forgets what was used least asks for a bucket, then for an element, which are two cold lines
 * and two cold pages for each id of a stack; this is one of each. An id that finds its set full
 * takes another's place, which is then reported again. 0 is no id.
 *
 * Included by the program, behind <bpf/bpf_helpers.h>, and by the plugin, which forgets ids. */
#pragma once

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#define KNOWN_WAYS 8u

struct known_set {
	__u64 ids[KNOWN_WAYS];
};

/* Of `n_sets`, a power of two. The lowest bit may be the same in all ids. */
static inline __u32 known_set_of(__u64 id, __u32 n_sets)
{
	return (__u32)(id >> 1) & (n_sets - 1);
}

static inline int known_in(const struct known_set *set, __u64 id)
{
	int found = 0;

	for (__u32 i = 0; i < KNOWN_WAYS; i++)
		found |= set->ids[i] == id;
	return found;
}

/* Puts an id into a free place, or into that of `way`, any number. */
static inline void known_put(struct known_set *set, __u64 id, __u32 way)
{
	for (__u32 i = 0; i < KNOWN_WAYS; i++)
		if (set->ids[i] == 0)
			way = i;
	set->ids[way & (KNOWN_WAYS - 1)] = id;
}

#ifdef __BPF__
/* A map that begins at the start of a page, so that a set is one line. */
#define KNOWN_IDS(name, n_sets)                                                                    \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                                  \
		__uint(map_flags, BPF_F_MMAPABLE);                                                 \
		__uint(max_entries, n_sets);                                                       \
		__type(key, __u32);                                                                \
		__type(value, struct known_set);                                                   \
	} name SEC(".maps")

static __always_inline int known_find(void *map, __u32 n_sets, __u64 id)
{
	__u32 index = known_set_of(id, n_sets);
	const struct known_set *set = bpf_map_lookup_elem(map, &index);

	return set && known_in(set, id);
}

static __always_inline void known_add(void *map, __u32 n_sets, __u64 id)
{
	__u32 index = known_set_of(id, n_sets);
	struct known_set *set = bpf_map_lookup_elem(map, &index);

	if (set)
		known_put(set, id, bpf_get_prandom_u32());
}
#else
/* The next walk that meets the id reports it again. What walks add to its set meanwhile may be
 * lost, and is reported again as well. Any thread; of two that forget ids of one set at once, one
 * may be undone: who finds no name forgets again. */
void known_ids_forget(int map_fd, __u32 n_sets, __u64 id);
#endif
