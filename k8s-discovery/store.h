/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pods that are known, as rows of a target list. A pod owns a block of row
 * ids for as long as it exists, so a pod that changes changes its own rows and
 * no others. A relist marks and sweeps: what the new list does not name is gone.
 */
#ifndef K8S_STORE_H
#define K8S_STORE_H

#include "pod.h"

struct store;

struct store *store_new(uint64_t producer);
void store_free(struct store *store);

/* `space` tells lists of different namespaces apart: a sweep concerns its own
 * only. 0 or -ENOMEM (the pod is as before). */
int store_set(struct store *store, uint32_t space, const struct pod *pod);
void store_remove(struct store *store, struct str key);

/* Between begin and sweep every pod of the list is set; sweep removes the
 * others of that space. */
void store_begin(struct store *store, uint32_t space);
void store_sweep(struct store *store, uint32_t space);
/* Removes the pods of all spaces below this one. */
void store_sweep_below(struct store *store, uint32_t space);

/* The list to flush. */
struct target_list *store_list(struct store *store);
size_t store_pods(const struct store *store);

#endif
