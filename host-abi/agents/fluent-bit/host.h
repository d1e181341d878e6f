/* SPDX-License-Identifier: Apache-2.0 */
/* Fluent Bit, as plugins that are found by name know it: three structures, which have only grown at
 * their ends from 2.2 to 5.1 (flb_plugin_proxy_def, flb_api, flbgo_input_plugin and
 * flbgo_output_plugin), and functions that it exports besides. Those are called with pointers that
 * are opaque here.
 *
 * The functions carry profiles as OTLP, whose tables are a dictionary since Fluent Bit 5.0. Before,
 * they mean other bytes, or are not there. */
#pragma once

#include "base/str.h"

#define HOST_INPUT_PLUGIN  1
#define HOST_OUTPUT_PLUGIN 2
#define HOST_PROXY_GO      11
#define HOST_PROFILES      16 /* of `signals` */
#define HOST_LOG_ERROR     1
#define HOST_LOG_WARN      2

/* What it is made of and exports, of what plugins call (andiron/embed.h). */
#define HOST_ANSWERS "zstd protobuf-c"

/* What FLBPluginFlush answers. */
#define HOST_ERROR 0 /* it is dropped */
#define HOST_OK    1
#define HOST_RETRY 2

struct host_definition {
	int type;
	int proxy;
	int flags;
	char *name;
	char *description;
	int signals; /* of an output; absent before 4.2.3, whose last member is `description` */
};

struct host_api {
	const char *(*output_property)(const char *key, void *instance);
	const char *(*input_property)(const char *key, void *instance);
	void *unused[2];
	void (*log)(int level, const char *file, int line, const char *format, ...);
};

/* An input, or an output. */
struct host_plugin {
	char *name;
	const struct host_api *api;
	void *instance;
};

/* One plugin of either kind, and how it reads properties. */
struct host_handle {
	struct host_api api; /* a copy: Fluent Bit's goes before andiron's threads do */
	void *instance;
	const char *(*property)(const char *key, void *instance);
	const char *prefix; /* of its log lines */
};

/* A property's value; NULL where it is empty or not there. */
const char *host_property(const struct host_handle *h, const char *key);

/* A whole number of that range, or `usual` where there is none; 0: it is something else, which the
 * log has. */
uint64_t host_number(const struct host_handle *h, const char *key, uint64_t usual, uint64_t most);

/* A line of the log; `component` may be empty. [any] */
void host_say(const struct host_handle *h, int level, const char *component, const char *line);

/* Says the warnings of a configuration that is good, if any, and frees them. */
void host_warn(const struct host_handle *h, char **text);

/* Whether it has the profiles signal as it is meant here, and takes Prometheus's text. */
bool host_has_profiles(void);
bool host_has_metrics(void);

/* Hand a request of OTLP's profiles signal, or Prometheus's text, to the pipeline of an input, from
 * within its callback. False: it does not take it. */
bool host_add_profiles(void *instance, struct str request);
bool host_add_metrics(void *instance, struct str text);
