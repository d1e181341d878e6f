/* SPDX-License-Identifier: Apache-2.0 */
/* Names of frames: what the program has copied, made into text once and kept. Bounded: NAMES_MAX
 * methods and SITES_MAX places, of which the ones that were not used lately make room for
 * others. */
#pragma once

#include <stdint.h>

#include "jvm/walk/jvm-records.h"

#define NAMES_MAX 8192
#define SITES_MAX 16384

/* A method's text, the cache's, until names_begin(). */
struct name_text {
	const char *function, *file;
	uint32_t n_function, n_file;
	uint32_t line, first_line;
};

struct names;

/* Where the program's copies are looked up: 0 and the value, or a negative errno. */
struct names_source {
	void *self;
	int (*name)(void *self, const struct jvm_name_key *key, struct jvm_name *ret);
	int (*site)(void *self, const struct jvm_site_key *key, struct jvm_site *ret);
};

struct names *names_new(const struct names_source *source);
void names_free(struct names *n);

/* Texts that were given out before are not used any more. At most JVM_INLINED + 8 methods may be
 * asked for until the next call. */
void names_begin(struct names *n);

/* The method of an identity at a bytecode index; `excluded` as line_find() has it. 0 or -ENOENT. */
int names_method(struct names *n, uint32_t process, uint64_t identity, uint32_t bci, int excluded,
		 struct name_text *ret);

/* The methods at a place in compiled code, the cache's, until the next call. NULL: not known. */
const struct jvm_site *names_site(struct names *n, const struct jvm_site_key *key);
