/* SPDX-License-Identifier: Apache-2.0 */
/* Target match: the target of a process, by the rules of Alloy's pyroscope.ebpf. `__process_pid__`
 * selects that process. Else the container id selects all processes of the container. The default
 * target, if any, takes the rest.
 *
 * A batch has the target's labels, less those that begin with two underscores. `__symbolize__` (for
 * profile.symbolize) and `__name__` stay. `service_name` is that of target_service_name, with the
 * prefix "ebpf/". */
#pragma once

#include "abi/target-selector.h"
#include "abi/target-list.h"

#include <stdint.h>

/* One target, ready for a batch. Labels are sorted by name. Stays what and where it is until its
 * target has changed or gone and matcher_settle was called after that, so that a process whose
 * target went with its exit can still be accounted for. */
struct match {
	const struct target_label *labels;
	uint32_t n_labels;
	uint32_t pid; /* __process_pid__, else 0 */
	struct str container;
	uint64_t fingerprint; /* of the labels: equal ones are one group of a batch */
	uint32_t n_processes; /* the caller's own count */
	uint32_t at;          /* its position among all, or among the replaced ones */
	/* The matcher's own. */
	const struct target_row *row; /* NULL: the default target's */
	struct match *lesser;         /* of the same process or container, and does not win */
	struct target_label *strings; /* what the labels borrow from, if it is not the row's */
	bool used;                    /* said by matcher_use */
};

struct matcher;

struct matcher *matcher_new(void);
void matcher_free(struct matcher *m);

/* Applies an update of targets, as target_table_apply. What has changed is matched anew at once,
 * nothing else is. O(changes) */
int matcher_apply(struct matcher *m, const struct andiron_targets *update);

/* The labels of the default target (copied), or that there is none. 0 or -ENOMEM (unchanged). */
int matcher_set_default(struct matcher *m, bool enabled, const struct target_label *labels,
			size_t n);

/* To be called after the two above: the default target takes effect, and targets for which there
 * was no memory are tried again. 0 or -ENOMEM (it goes on with the old default, and without those).
 * O(1), after such a shortage O(targets). */
int matcher_rebuild(struct matcher *m);

/* Frees matches that were replaced: all; or, so that many changes in one interval do not pile up,
 * those that nobody uses: first matcher_use for each match that is used (may be NULL), then
 * matcher_prune. */
void matcher_settle(struct matcher *m);
void matcher_use(struct matcher *m, const struct match *match);
void matcher_prune(struct matcher *m);

/* Rises with every change. */
uint64_t matcher_generation(const struct matcher *m);

/* The match of a process; NULL if it is not to be profiled. `root` is another pid to try (0: none),
 * `container` may be empty. Expected O(1). */
struct match *matcher_find(struct matcher *m, uint32_t pid, uint32_t root, struct str container);

/* Visits all targets as they came in, in order; `change` says nothing. */
void matcher_each(const struct matcher *m, target_change_fn fn, void *context);
/* The match of a selector, the winner of several. NULL: none. Expected O(1). */
struct match *matcher_of(const struct matcher *m, struct target_selector selector);

/* That of the default target, while it is in use; else NULL. */
const struct match *matcher_default(const struct matcher *m);
/* All matches but the default one, in any order, for metrics and selection. */
struct match *const *matcher_all(struct matcher *m, size_t *ret_n);
bool matcher_has_containers(const struct matcher *m);
/* Whether a target names this pid, or this container. */
bool matcher_has_pid(struct matcher *m, uint32_t pid);
bool matcher_has_container(struct matcher *m, struct str container);
