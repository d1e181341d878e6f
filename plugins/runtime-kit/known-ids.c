/* SPDX-License-Identifier: Apache-2.0 */
/* See known-ids.h. */
#include "runtime-kit/known-ids.h"

#include <bpf/bpf.h>

void known_ids_forget(int map_fd, __u32 n_sets, __u64 id)
{
	__u32 index = known_set_of(id, n_sets);
	struct known_set set;

	if (bpf_map_lookup_elem(map_fd, &index, &set) != 0 || !known_in(&set, id))
		return;
	for (__u32 i = 0; i < KNOWN_WAYS; i++)
		if (set.ids[i] == id)
			set.ids[i] = 0;
	bpf_map_update_elem(map_fd, &index, &set, BPF_ANY);
}
