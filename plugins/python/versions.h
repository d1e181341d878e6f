/* SPDX-License-Identifier: Apache-2.0 */
/* Which version an interpreter is that only says so in its constant texts: to 3.10, where there is
 * no `Py_Version`. A static program has texts of other libraries as well (SQLite's "3.8.11" looks
 * like one of CPython's), so all of them are taken before one is believed. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define VERSION_TEXT_MAX 16u /* bytes of a text that may be a version */

struct version_texts {
	uint32_t
		first[11]; /* by minor version: the first "3.8.18", as in PY_VERSION_HEX; 0: none */
	uint32_t named;    /* bit n: there is a "python3.n" */
};

/* Takes the texts of a piece of the file. Pieces overlap by VERSION_TEXT_MAX. */
void version_texts_add(struct version_texts *v, const char *bytes, size_t n);

/* The version of the only minor version that texts speak of, or that is also in a name such as
 * "lib/python3.8"; without the level. 0: there is none, or more than one. */
uint32_t version_texts_agreed(const struct version_texts *v);
