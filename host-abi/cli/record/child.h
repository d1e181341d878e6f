/* SPDX-License-Identifier: Apache-2.0 */
/* The command behind `record -- CMD`: forked at once, so that its process id can be a target, and
 * held back before exec until sampling is live. */
#pragma once

#include "base/error.h"
#include "cli/sudo-caller.h"

#include <stdbool.h>
#include <sys/types.h>

struct child {
	pid_t pid;     /* 0: none, or reaped */
	int go_fd;     /* -1 once it was let go */
	int error_fd;  /* exec's errno comes here */
	int exit_code; /* once reaped */
};

#define CHILD_NULL ((struct child){0, -1, -1, 0})

/* Forks; must be called while there is one thread. What cannot be found or run is refused here
 * already: -ENOENT or -EACCES, with text. argv is borrowed until child_let_go. to_stderr: what it
 * prints goes there, since standard output is taken. */
int child_start(struct child *child, char **argv, bool to_stderr, const struct caller *caller,
		struct error *err);

/* Lets it exec. */
void child_let_go(struct child *child);

/* The errno with which exec has failed, 0 if it has not; waits for exec, so after child_let_go
 * only. */
int child_exec_error(struct child *child);

/* Takes the exit code (128 + signal if killed) if it has ended. */
bool child_reap(struct child *child);

/* Ends one that was never let go, and forgets it. */
void child_fini(struct child *child);

/* What a shell answers for a command that cannot be run: 127 if there is none, 126 if it is there.
 * `error` is a positive errno. */
int child_code_of(int error);
