/* SPDX-License-Identifier: Apache-2.0 */
/* Two tables of fixed size, by hash, each slot among eight behind it. An entry that is used is
 * marked; the first unmarked one of the eight makes room, and marks are taken away on the way. */
#include "jvm/names.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "jvm/java-name.h"
#include "jvm/line-table.h"

#define WAYS         8
#define FUNCTION_MAX (JVM_CLASS_BYTES + JVM_METHOD_BYTES + 1)

struct method {
	struct jvm_name_key key; /* process 0: none */
	uint16_t used, n_function, n_file, n_lines;
	char *text; /* function, zero, file, zero, line table */
};

struct site {
	struct jvm_site_key key;
	uint32_t used;
	struct jvm_site *site;
};

struct names {
	struct names_source source;
	struct jvm_name scratch;
	struct jvm_site scratch_site;
	char *retired[JVM_INLINED + 8]; /* texts that made room since names_begin() */
	uint32_t n_retired;
	struct method methods[NAMES_MAX];
	struct site sites[SITES_MAX];
};

struct names *names_new(const struct names_source *source)
{
	struct names *n = calloc(1, sizeof(*n));

	if (n)
		n->source = *source;
	return n;
}

void names_begin(struct names *n)
{
	while (n->n_retired > 0)
		free(n->retired[--n->n_retired]);
}

void names_free(struct names *n)
{
	if (!n)
		return;
	names_begin(n);
	for (uint32_t i = 0; i < NAMES_MAX; i++)
		free(n->methods[i].text);
	for (uint32_t i = 0; i < SITES_MAX; i++)
		free(n->sites[i].site);
	free(n);
}

static uint32_t length(uint16_t n, uint32_t max)
{
	return n < max ? n : max;
}

static char *text_make(const struct jvm_name *name, struct method *m)
{
	char function[FUNCTION_MAX + 1];
	uint32_t n_file = length(name->file_bytes, JVM_FILE_BYTES);
	uint32_t n_lines = length(name->line_bytes, JVM_LINE_BYTES);
	size_t n;
	char *text;

	if (name->class_bytes == 0) {
		/* A stub: its own name, up to the zero byte. */
		size_t bytes =
			strnlen(name->method_name, length(name->method_bytes, JVM_METHOD_BYTES));

		memcpy(function, "~", 1);
		memcpy(function + 1, name->method_name, bytes);
		n = bytes + 1;
	} else {
		n = java_name(name->class_name, length(name->class_bytes, JVM_CLASS_BYTES),
			      name->method_name, length(name->method_bytes, JVM_METHOD_BYTES),
			      function, FUNCTION_MAX);
	}
	text = malloc(n + 1 + n_file + 1 + n_lines);
	if (!text)
		return NULL;
	memcpy(text, function, n);
	text[n] = 0;
	memcpy(text + n + 1, name->file_name, n_file);
	text[n + 1 + n_file] = 0;
	memcpy(text + n + 1 + n_file + 1, name->lines, n_lines);
	m->n_function = (uint16_t)n;
	m->n_file = (uint16_t)n_file;
	m->n_lines = (uint16_t)n_lines;
	return text;
}

static uint64_t mixed(uint64_t a)
{
	a *= 0x9e3779b97f4a7c15ull;
	return a ^ a >> 29;
}

/* The place for a new one among those behind `hash`. */
static struct method *method_place(struct names *n, uint64_t hash)
{
	struct method *m = NULL;

	for (uint32_t i = 0; i <= WAYS; i++) {
		m = &n->methods[(hash + i % WAYS) % NAMES_MAX];
		if (!m->used)
			break;
		m->used = 0;
	}
	if (m->text && n->n_retired < sizeof(n->retired) / sizeof(*n->retired))
		n->retired[n->n_retired++] = m->text;
	else if (m->text)
		return NULL;
	*m = (struct method){0};
	return m;
}

static struct method *method_find(struct names *n, const struct jvm_name_key *key)
{
	uint64_t hash = mixed(key->identity ^ (uint64_t)key->process << 48);
	struct method *m;
	char *text;

	for (uint32_t i = 0; i < WAYS; i++) {
		m = &n->methods[(hash + i) % NAMES_MAX];
		if (m->key.process == key->process && m->key.identity == key->identity) {
			m->used = 1;
			return m;
		}
	}
	if (n->source.name(n->source.self, key, &n->scratch) != 0)
		return NULL;
	m = method_place(n, hash);
	text = m ? text_make(&n->scratch, m) : NULL;
	if (!text)
		return NULL;
	m->text = text;
	m->key = *key;
	m->used = 1;
	return m;
}

int names_method(struct names *n, uint32_t process, uint64_t identity, uint32_t bci, int excluded,
		 struct name_text *ret)
{
	struct jvm_name_key key = {.process = process, .identity = identity};
	const struct method *m = method_find(n, &key);
	const char *lines;

	if (!m)
		return -ENOENT;
	*ret = (struct name_text){
		.function = m->text,
		.n_function = m->n_function,
		.file = m->text + m->n_function + 1,
		.n_file = m->n_file,
	};
	lines = ret->file + m->n_file + 1;
	if (m->n_lines > 0)
		ret->line = line_find((const uint8_t *)lines, m->n_lines, excluded,
				      bci == JVM_BCI_NATIVE ? 0 : bci, &ret->first_line);
	if (bci == JVM_BCI_NATIVE)
		ret->line = 0;
	return 0;
}

static int site_equal(const struct jvm_site_key *a, const struct jvm_site_key *b)
{
	return a->process == b->process && a->nmethod == b->nmethod && a->offset == b->offset &&
	       a->compile_id == b->compile_id;
}

static struct site *site_place(struct names *n, uint64_t hash)
{
	struct site *s = NULL;

	for (uint32_t i = 0; i <= WAYS; i++) {
		s = &n->sites[(hash + i % WAYS) % SITES_MAX];
		if (!s->used)
			break;
		s->used = 0;
	}
	free(s->site);
	*s = (struct site){0};
	return s;
}

const struct jvm_site *names_site(struct names *n, const struct jvm_site_key *key)
{
	uint64_t hash = mixed(mixed(key->nmethod ^ key->offset) ^ key->process ^
			      (uint64_t)key->compile_id << 32);
	struct site *s;
	uint64_t bytes;

	for (uint32_t i = 0; i < WAYS; i++) {
		s = &n->sites[(hash + i) % SITES_MAX];
		if (s->site && site_equal(&s->key, key)) {
			s->used = 1;
			return s->site;
		}
	}
	if (n->source.site(n->source.self, key, &n->scratch_site) != 0 || n->scratch_site.n == 0 ||
	    n->scratch_site.n > JVM_INLINED)
		return NULL;
	s = site_place(n, hash);
	/* As many methods as there are. */
	bytes = offsetof(struct jvm_site, methods) + 8ull * n->scratch_site.n;
	s->site = malloc(bytes);
	if (!s->site)
		return NULL;
	memcpy(s->site, &n->scratch_site, bytes);
	s->key = *key;
	s->used = 1;
	return s->site;
}
