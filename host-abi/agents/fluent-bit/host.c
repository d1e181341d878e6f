/* SPDX-License-Identifier: Apache-2.0 */
/* See host.h. The functions are weak: they are found as the plugin is opened, and where Fluent Bit
 * lacks one it is NULL. */
#include "agents/fluent-bit/host.h"

#include <andiron/embed.h>

#include <stdio.h>

#define WEAK __attribute__((weak, visibility("default")))

struct cprof;
struct cmt;

/* lib/cprofiles, lib/cmetrics, include/fluent-bit. */
WEAK int cprof_decode_opentelemetry_create(struct cprof **ret, unsigned char *bytes, size_t n,
					   size_t *offset);
WEAK void cprof_destroy(struct cprof *profiles);
WEAK int flb_input_profiles_append(void *instance, const char *tag, size_t n,
				   struct cprof *profiles);
WEAK int cmt_decode_prometheus_create(struct cmt **ret, const char *text, size_t n, void *options);
WEAK void cmt_decode_prometheus_destroy(struct cmt *metrics);
WEAK int flb_input_metrics_append(void *instance, const char *tag, size_t n, struct cmt *metrics);

/* The descriptor of OTLP's message ProfilesDictionary. */
#define DICTIONARY "opentelemetry__proto__profiles__v1development__profiles_dictionary__descriptor"
extern const char profiles_dictionary[] __asm__(DICTIONARY) WEAK;

const char *host_property(const struct host_handle *h, const char *key)
{
	const char *value = h->property(key, h->instance);

	return value && value[0] ? value : NULL;
}

uint64_t host_number(const struct host_handle *h, const char *key, uint64_t usual, uint64_t most)
{
	const char *text = host_property(h, key);
	uint64_t value = usual;
	char line[128];

	if (text && (!str_u64(str_of(text), &value) || value < 1 || value > most)) {
		snprintf(line, sizeof(line), "%s is a whole number from 1 to %llu", key,
			 (unsigned long long)most);
		host_say(h, HOST_LOG_ERROR, "", line);
		return 0;
	}
	return value;
}

void host_say(const struct host_handle *h, int level, const char *component, const char *line)
{
	h->api.log(level, NULL, 0, "[%s] %s%s%s", h->prefix, component, component[0] ? ": " : "",
		    line);
}

void host_warn(const struct host_handle *h, char **text)
{
	if (*text)
		host_say(h, HOST_LOG_WARN, "", *text);
	andiron_text_free(*text);
	*text = NULL;
}

bool host_has_profiles(void)
{
	return profiles_dictionary && cprof_decode_opentelemetry_create && cprof_destroy &&
	       flb_input_profiles_append;
}

bool host_has_metrics(void)
{
	return cmt_decode_prometheus_create && cmt_decode_prometheus_destroy &&
	       flb_input_metrics_append;
}

bool host_add_profiles(void *instance, struct str request)
{
	struct cprof *profiles = NULL;
	size_t offset = 0;
	int r = cprof_decode_opentelemetry_create(&profiles, (unsigned char *)(uintptr_t)request.p,
						  request.n, &offset);

	if (r == 0) {
		r = flb_input_profiles_append(instance, NULL, 0, profiles);
		cprof_destroy(profiles);
	}
	return r == 0;
}

bool host_add_metrics(void *instance, struct str text)
{
	struct cmt *metrics = NULL;
	int r = cmt_decode_prometheus_create(&metrics, text.p, text.n, NULL);

	if (r == 0) {
		r = flb_input_metrics_append(instance, NULL, 0, metrics);
		cmt_decode_prometheus_destroy(metrics);
	}
	return r == 0;
}
