/* SPDX-License-Identifier: Apache-2.0 */
/* The BPF program's body as ordinary C, over one process that a test gives it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "v8/v8-heap.h"
#include "v8/shared.h"

#define V8_INLINE static inline
#define V8_GLOBAL static

#define NATIVE_SIGHTINGS 4096u

struct v8_scratch;
struct andiron_walk;

static int h_read(void *ret, uint32_t n, uint64_t address);
static void h_copy(void *ret, uint32_t n, const void *from);
static uint32_t h_u32(const uint8_t *bytes);
static struct andiron_walk *h_walk(uint32_t cpu);
static struct v8_scratch *h_scratch(uint32_t cpu);
static const struct v8_process *h_process(uint32_t pid);
static const struct v8_layout *h_layout(uint32_t layout);
static uint64_t h_report(struct v8_scratch *s);

#include "v8/walk.h"

static struct native {
	struct v8_memory *memory;
	struct andiron_walk walk;
	struct v8_scratch scratch;
	struct v8_process process;
	struct v8_layout layout;
	struct v8_sighting sightings[NATIVE_SIGHTINGS];
	uint32_t n_sightings;
	struct v8_place_state known[2]; /* of the places in which functions are seen */
} native;

static int h_read(void *ret, uint32_t n, uint64_t address)
{
	return memory_read(native.memory, address, ret, n) ? 0 : -1;
}

static void h_copy(void *ret, uint32_t n, const void *from)
{
	memcpy(ret, from, n);
}

static uint32_t h_u32(const uint8_t *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

static struct andiron_walk *h_walk(uint32_t cpu)
{
	return &native.walk;
}

static struct v8_scratch *h_scratch(uint32_t cpu)
{
	return &native.scratch;
}

static const struct v8_process *h_process(uint32_t pid)
{
	return &native.process;
}

static const struct v8_layout *h_layout(uint32_t layout)
{
	return &native.layout;
}

static uint64_t h_report(struct v8_scratch *s)
{
	static const struct v8_place_state unknown;

	if (native.n_sightings < NATIVE_SIGHTINGS)
		native.sightings[native.n_sightings++] = s->sighting;
	for (int i = 0; i < 2; i++)
		if (native.known[i].header != 0 && v8_place_has(&native.known[i], s->sighting.code))
			return v8_known(s, &native.known[i]);
	return v8_known(s, &unknown);
}
