/* SPDX-License-Identifier: Apache-2.0 */
/* Says when a configuration on disk may have changed: files, directories of *.alloy files, and what
 * their paths lead through. A Kubernetes ConfigMap changes by the swap of one link, `..data`, above
 * the file; an editor renames over it; others write into it.
 *
 * inotify says so. Where there is none (the limit of instances is reached), or a directory may not
 * be watched, it is time to look every 10 seconds. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config_watch;

/* From here on changes are noticed, so the files are read after this. Paths are borrowed; one that
 * does not exist is waited for. 0 or a negative errno with the cause. O(components of the paths +
 * entries of directories). */
int config_watch_new(char *const *paths, size_t n, struct config_watch **ret, struct error *err);
void config_watch_free(struct config_watch *watch);

/* Readable when config_watch_take is to be called; valid until config_watch_free. */
int config_watch_fd(const struct config_watch *watch);

/* Takes what has come. True: something has changed 100 ms ago or less, or it is time to look; what
 * changes after the call is said again. Changes of one moment are said once. Never waits. */
bool config_watch_take(struct config_watch *watch);

/* Says so again after that time, whether something has changed or not. */
void config_watch_again(struct config_watch *watch, int64_t after_ns);

/* From now on it is also time so long after each look, if not sooner already. */
void config_watch_every(struct config_watch *watch, int64_t every_ns);

/* Why it looks every 10 seconds, as an errno; 0: inotify says what changes. */
int config_watch_blind(const struct config_watch *watch);
