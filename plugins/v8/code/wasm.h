/* SPDX-License-Identifier: Apache-2.0 */
/* Code of Wasm, from an address in it and the instance that its frame has. V8 exports where the
 * instance's script is, and nothing of what is behind it: NativeModule, its table of code, the
 * module's bytes. So these are recognised by what they hold: the bytes by their first eight, the
 * table by code that refers back to its NativeModule and counts up. Members moved in each of
 * V8 8.1, 8.4, 9.4, 10.2, 11.3, 12.4, 13.6 and 14.6 (src/wasm/wasm-code-manager.h); this fits all
 * of them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "v8/code/code.h"
#include "v8/shared.h"
#include "v8/v8-heap.h"

/* Finds the code that an instance was seen in, and what its function is called: its name, else that
 * of its export, else `wasm-function[INDEX]`. False: it is not found, or not its function's code by
 * now. The caller owns what is in *ret. */
bool wasm_read(const struct heap *h, uint64_t seed, const struct v8_sighting *s, struct code *ret);
