/* SPDX-License-Identifier: Apache-2.0 */
/* The program that takes stack snapshots by task work (bpf/snapshot.bpf.c). It shares the session's
 * maps. Without it a snapshot is copied at once, from the pages that are present. */
#pragma once

struct bpf_object;
struct bpf_program;

/* Of the session, loaded; descriptors, borrowed. */
struct snapshot_maps {
	int cpus, walks, ring;
};

/* Loads the form that this kernel has: 0 and the object, the caller's to close, or NULL where it
 * has none; or a negative errno. Some 20 ms. */
int snapshot_program_load(const struct snapshot_maps *maps, struct bpf_object **ret);
/* Its program, and the map of its own. */
struct bpf_program *snapshot_program_of(struct bpf_object *object);
int snapshot_program_slots(const struct bpf_object *object);
