/* SPDX-License-Identifier: Apache-2.0 */
/* The walker of plugins/jvm/walk/ as ordinary C: over a stopped process or a recording of what a
 * walk has read. One at a time; who includes this says where memory is (memory_at). */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define JVM_INLINE static inline __attribute__((unused))
#define JVM_GLOBAL static __attribute__((unused))

#include "jvm/walk/jvm-records.h"

struct jvm_state;
struct andiron_walk;

/* 0, or -1: it is not there. */
static int memory_at(void *to, uint32_t n, uint64_t address);

#define KEPT 20000

/* Copies of the walker, as the program's maps have them. */
static struct kept {
	struct jvm_name_key name_keys[KEPT];
	struct jvm_name *names[KEPT];
	struct jvm_site_key site_keys[KEPT];
	struct jvm_site *sites[KEPT];
	struct jvm_site_key place_keys[KEPT];
	__u32 places[KEPT];
	uint32_t n_names, n_sites, n_places;
} kept;

static struct jvm_state *h_state(__u32 cpu);
static struct andiron_walk *h_walk(__u32 cpu);

static int h_read(void *to, __u32 n, __u64 address)
{
	return memory_at(to, n, address) != 0;
}

static const struct jvm_name *kept_name(const struct jvm_name_key *key)
{
	for (uint32_t i = 0; i < kept.n_names; i++)
		if (kept.name_keys[i].identity == key->identity)
			return kept.names[i];
	return NULL;
}

static int h_name_known(const struct jvm_name_key *key)
{
	return kept_name(key) != NULL;
}

static void h_name_put(const struct jvm_name_key *key, const struct jvm_name *name)
{
	if (kept.n_names == KEPT)
		return;
	kept.name_keys[kept.n_names] = *key;
	kept.names[kept.n_names] = malloc(sizeof(*name));
	*kept.names[kept.n_names++] = *name;
}

static const struct jvm_site *kept_site(const struct jvm_site_key *key)
{
	for (uint32_t i = kept.n_sites; i > 0; i--)
		if (memcmp(&kept.site_keys[i - 1], key, sizeof(*key)) == 0)
			return kept.sites[i - 1];
	return NULL;
}

static void h_site_put(const struct jvm_site_key *key, const struct jvm_site *site)
{
	if (kept.n_sites == KEPT || kept_site(key))
		return;
	kept.site_keys[kept.n_sites] = *key;
	kept.sites[kept.n_sites] = malloc(sizeof(*site));
	*kept.sites[kept.n_sites++] = *site;
}

static const __u32 *h_place_find(const struct jvm_site_key *key)
{
	for (uint32_t i = 0; i < kept.n_places; i++)
		if (memcmp(&kept.place_keys[i], key, sizeof(*key)) == 0)
			return &kept.places[i];
	return NULL;
}

static void h_place_put(const struct jvm_site_key *key, const __u32 *place)
{
	if (kept.n_places == KEPT)
		return;
	kept.place_keys[kept.n_places] = *key;
	kept.places[kept.n_places++] = *place;
}

static inline void kept_clear(void)
{
	while (kept.n_names > 0)
		free(kept.names[--kept.n_names]);
	while (kept.n_sites > 0)
		free(kept.sites[--kept.n_sites]);
	kept.n_places = 0;
}

#include "jvm/walk/walk.h"

static struct jvm_state native_state;
static struct andiron_walk native_walk;

static struct jvm_state *h_state(__u32 cpu)
{
	return &native_state;
}

static struct andiron_walk *h_walk(__u32 cpu)
{
	return &native_walk;
}

/* Walks until native code or nothing is found. */
static inline void walk_all(const struct jvm_process *process)
{
	native_state.process = *process;
	for (int i = 0; i < 6 && native_walk.end == 0; i++) {
		jvm_walk(0, &native_state, &native_walk);
		if (heap_of(&native_state, native_walk.pc) < 0)
			break;
	}
}
