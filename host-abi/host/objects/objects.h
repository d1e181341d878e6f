/* SPDX-License-Identifier: Apache-2.0 */
/* andiron.objects/1 (andiron/object.h) as a service of the host. */
#pragma once

#include "base/error.h"

#include <andiron/object.h>

#include <stddef.h>

struct objects;

/* 0 or -ENOMEM. */
int objects_new(struct objects **ret, struct error *err);
/* Answers ANDIRON_OPEN_KALLSYMS with duplicates of this descriptor from now on; owns it. Before it
 * is used by others. */
void objects_set_kernel_symbols(struct objects *objects, int fd);
/* Closes everything; ids that are still held become void. */
void objects_free(struct objects *objects);

/* The table of functions; their `self` is the struct objects. Any thread. */
extern const struct andiron_objects objects_service;

/* How many descriptors are open at most, are open, and how many objects there are, for metrics. Any
 * thread. */
#define OBJECTS_MAX_OPEN 512
struct objects_count {
	size_t n_open;
	size_t n_objects;
};
struct objects_count objects_count(struct objects *objects);
