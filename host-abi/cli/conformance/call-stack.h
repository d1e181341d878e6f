/* SPDX-License-Identifier: Apache-2.0 */
/* How much of its stack a call uses: it runs on one that was filled with a pattern. What it leaves
 * untouched between frames is not seen as unused, since the deepest byte that changed counts. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Bytes that fn(arg) has used, at most a MiB; or a negative errno. */
int64_t call_stack_use(void (*fn)(void *arg), void *arg);
