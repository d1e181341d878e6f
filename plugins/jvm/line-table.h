/* SPDX-License-Identifier: Apache-2.0 */
/* A method's line numbers as the JVM keeps them: a byte for each pair of steps, five bits of
 * bytecode and three of lines; 255 stands before two compressed numbers; 0 ends. The bytes are
 * untrusted, and may have been cut. */
#pragma once

#include <stdint.h>

/* The line of a bytecode index, and the first one of all (0: none). `excluded`: compressed numbers
 * have no zero byte (JDK 19). 0 if it is not told, or if the table was cut before. */
uint32_t line_find(const uint8_t *bytes, uint64_t n, int excluded, uint32_t bci,
		   uint32_t *ret_first);
