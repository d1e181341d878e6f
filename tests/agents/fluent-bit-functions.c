/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that Fluent Bit 5 exports to its plugins, as far as in_andiron.so calls them: what is
 * handed to the pipeline is kept, for the test to take. */
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct cprof {
	size_t n;
	char bytes[];
};

const char opentelemetry__proto__profiles__v1development__profiles_dictionary__descriptor[1] EXPORT;
EXPORT int full; /* the pipeline takes nothing */
EXPORT int offered; /* profiles, whether it took them or not */

static struct cprof *kept[2]; /* the last of each signal */

static int keep(int signal, void *instance, const struct cprof *c)
{
	struct cprof *copy = malloc(sizeof(*c) + c->n);

	if (!copy || full || instance != (void *)77)
		return -1;
	memcpy(copy, c, sizeof(*c) + c->n);
	free(kept[signal]);
	kept[signal] = copy;
	return 0;
}

static int make(struct cprof **ret, const char *bytes, size_t n)
{
	struct cprof *c = malloc(sizeof(*c) + n);

	if (!c)
		return 1;
	c->n = n;
	memcpy(c->bytes, bytes, n);
	*ret = c;
	return 0;
}

EXPORT const char *taken(int signal, size_t *ret_n)
{
	*ret_n = kept[signal] ? kept[signal]->n : 0;
	return kept[signal] ? kept[signal]->bytes : NULL;
}

EXPORT int cprof_decode_opentelemetry_create(struct cprof **ret, char *bytes, size_t n,
					     size_t *offset)
{
	*offset = n;
	return make(ret, bytes, n);
}

EXPORT void cprof_destroy(struct cprof *c)
{
	free(c);
}

EXPORT int flb_input_profiles_append(void *instance, const char *tag, size_t n, struct cprof *c)
{
	offered++;
	return keep(0, instance, c);
}

EXPORT int cmt_decode_prometheus_create(struct cprof **ret, const char *text, size_t n,
					void *options)
{
	return make(ret, text, n);
}

EXPORT void cmt_decode_prometheus_destroy(struct cprof *c)
{
	free(c);
}

EXPORT int flb_input_metrics_append(void *instance, const char *tag, size_t n, struct cprof *c)
{
	return keep(1, instance, c);
}
