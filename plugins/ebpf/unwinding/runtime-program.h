/* SPDX-License-Identifier: Apache-2.0 */
/* BPF programs of language runtimes, loaded beside those of a session. */
#pragma once

#include "ebpf/unwinding/runtimes.h"
#include "ebpf/kernel/session.h"

/* The kernel that the session is loaded into, which outlives it. Loading: its programs must not run
 * yet. Some 10 ms a program. */
struct runtimes_kernel runtime_programs(struct session *session);
