/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Snapshots by task work, as 6.18 has it: see task-work.h. */
#define TASK_WORK_AUX
#include "snapshot.bpf.c"
