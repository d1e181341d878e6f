/* SPDX-License-Identifier: Apache-2.0 */
/* Directories for the spools of tests: in memory where there is such a place, since syncing costs
 * nothing there. */
#pragma once

#include <stddef.h>

/* Makes one, and says where: `n` bytes, 32 are enough. */
void test_directory_make(char *path, size_t n);
/* Removes the files in it; then it may be rmdir'ed. One that is not there is empty. */
void test_directory_clear(const char *path);
