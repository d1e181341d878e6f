/* SPDX-License-Identifier: Apache-2.0 */
/* The folder in a JVM's tmp_dir, seen from outside: andiron-java-PID, for its user alone. It holds
 * the recording, async-profiler's log, and a copy of the library where the JVM does not see the
 * original. A lock on it makes this agent's component the only one that profiles the JVM.
 *
 * The JVM's root is entered by descriptor (/proc/PID/root), and no path in it leads out again. It
 * stays open, so that a JVM's last recording can be read after its end. All calls but folder_root
 * are made as the JVM's user (java/attach/identity.h). */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "java/attach/jvm.h"
#include "java/attach/library.h"

#include <stdbool.h>

#define FOLDER_MAX_RECORDING (48u << 20) /* bytes; a batch has at most 64 MiB */

struct folder {
	int tmp;    /* /tmp of the JVM, for its socket */
	int parent; /* tmp_dir of the JVM */
	int fd;
	char name[40];
	char path[256];    /* as the JVM sees it */
	char library[256]; /* as the JVM sees it */
	bool copied;       /* the library is in the folder */
	uid_t uid;
};

#define FOLDER_NULL ((struct folder){.tmp = -1, .parent = -1, .fd = -1})

/* The JVM's root, a descriptor or a negative errno. As ourselves: it takes CAP_SYS_PTRACE. */
int folder_root(uint32_t pid, struct error *err);

/* Makes the folder, or takes over one that an earlier agent left. 0, to be followed by
 * folder_close; -EBUSY: another component or agent has it; or another errno and why. */
int folder_open(struct folder *ret, int root, const struct jvm *jvm, struct str tmp_dir,
		struct error *err);
/* Leaves what is in it. */
void folder_close(struct folder *f);
/* Takes away the folder and what is in it. */
void folder_remove(struct folder *f);

/* Chooses the library's path in the JVM: its own, where the JVM sees the same file there and may
 * read it, else a copy in the folder. */
int folder_place(struct folder *f, int root, const struct library *library, struct error *err);

/* Whether there is a recording, whole or not. */
bool folder_has_recording(const struct folder *f);
/* Appends the recording and removes its file. 0; -ENOENT: there is none; -EBADMSG: it is not whole,
 * or no recording; -E2BIG; or another errno. */
int folder_take(struct folder *f, struct buf *out, struct error *err);
/* The last error in async-profiler's log, as one line; "" where there is none. */
void folder_log(const struct folder *f, char *out, size_t n);
