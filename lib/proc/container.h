/* SPDX-License-Identifier: Apache-2.0 */
/* What the text of /proc/PID/cgroup says about a process: its container, its systemd unit, its
 * path. The text is untrusted (a process can name cgroups that were delegated to it): any bytes are
 * legal input.
 *
 * Source of the format: cgroups(7), "ID:CONTROLLERS:PATH" per line; of the container shapes: what
 * Docker, containerd, CRI-O, Podman and ECS create. */
#pragma once

#include "base/str.h"

#define CONTAINER_ID_MAX 72

/* The id of the container that the process runs in, NUL-terminated: 64 lower-case hex digits, or
 * ECS's 32 and a dash and decimal digits. The first line with an id counts, in it the innermost. A
 * container's monitor (conmon) and mount units are not in the container. False, and `out`
 * untouched, where there is none. O(n). */
bool container_id(struct str cgroup_text, char out[CONTAINER_ID_MAX]);

/* The same for one cgroup path. */
bool container_id_of_path(struct str path, char out[CONTAINER_ID_MAX]);

/* The innermost systemd unit other than a slice ("nginx.service", of the system's manager or of a
 * user's), from systemd's own hierarchy or the unified one; STR_NULL where there is none. Borrowed
 * from the text. O(n). */
struct str systemd_unit(struct str cgroup_text);
