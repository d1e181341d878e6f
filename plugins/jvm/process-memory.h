/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a process that may change or vanish at any time. */
#pragma once

#include <stdint.h>

/* A descriptor of the process's memory, the caller's to close, or a negative errno. */
int memory_open(uint32_t pid);

/* 0, or -EFAULT unless all of it is there. */
int memory_read(int fd, void *to, uint64_t n, uint64_t at);

/* A word, 0 if it is not there. */
uint64_t memory_word(int fd, uint64_t at);
uint32_t memory_word32(int fd, uint64_t at);

/* A text of at most max - 1 bytes, ended by a zero byte; empty if it is not there. */
void memory_text(int fd, char *to, uint64_t max, uint64_t at);
