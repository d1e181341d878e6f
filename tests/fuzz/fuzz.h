/* SPDX-License-Identifier: Apache-2.0 */
/* A target of fuzzing: one function that reads bytes of a stranger. It has libFuzzer's signature,
 * so that the same file is run by driver.c in every `check`, and by libFuzzer with `meson setup
 * -Dlibfuzzer=true` and clang. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* 0. What breaks a promise ends the process. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* A file in memory of these bytes, the same descriptor each time. */
int fuzz_file(const uint8_t *bytes, size_t n);
