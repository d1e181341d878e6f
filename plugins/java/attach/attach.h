/* SPDX-License-Identifier: Apache-2.0 */
/* HotSpot's attach protocol, from the client's side. A file .attach_pidN and SIGQUIT make the JVM
 * listen at .java_pidN, both in its /tmp; a request is "1", a command and three arguments, each
 * ended by a NUL; the answer is text until the JVM closes.
 *
 * Nothing here waits: each call does what can be done at once. Whatever the other side is, an
 * answer has at most 64 KiB, and nothing that it puts into its /tmp is followed or trusted: the
 * socket must be one, its user's, and the JVM's own.
 *
 * All calls are made as the JVM's user (java/attach/identity.h). Source: the JDK,
 * attachListener_posix.cpp and VirtualMachineImpl.java. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define ATTACH_MAX_ARGUMENT 1024 /* bytes with its NUL */

struct attach {
	int tmp;   /* the JVM's /tmp, borrowed */
	int pidfd; /* borrowed */
	uint32_t pid, inner_pid;
	uid_t uid;
	int socket; /* -1: none */
	bool asked; /* for this connection, by the file and SIGQUIT */
	struct buf answer;
};

void attach_init(struct attach *a, int tmp, int pidfd, uint32_t pid, uint32_t inner_pid, uid_t uid);
/* Closes and forgets what was connected; attach_init need not follow. */
void attach_reset(struct attach *a);

/* Connects. 0; -EAGAIN: the JVM was asked to listen and does not yet: call again; -ESRCH: it has
 * ended; or another negative errno and why. It is asked once until attach_reset, and only while it
 * has a handler for SIGQUIT. */
int attach_connect(struct attach *a, struct error *err);
/* Takes away the file that asked. After attach_connect has said something else than -EAGAIN, or
 * when it is not called again. */
void attach_withdraw(struct attach *a);

/* Sends `load PATH true OPTIONS`: the library at an absolute path, as the JVM sees it. 0, -E2BIG:
 * one is longer than a JVM takes; or another errno and why. */
int attach_load(struct attach *a, const char *path, const char *options, struct error *err);

/* Reads on. 0: the answer is whole; -EAGAIN: more is to come, when the socket is readable. */
int attach_read(struct attach *a, struct error *err);

/* What a whole answer to `load` says: 0 the library was loaded and its own code is in *ret_code; or
 * -EBADMSG, -EPROTO and the JVM's words; -ECONNRESET: it says nothing. */
int attach_result(struct str answer, int *ret_code, struct error *err);
