/* SPDX-License-Identifier: Apache-2.0 */
/* out_andiron.so, an output of Fluent Bit for its profiles signal: a configuration of andiron's
 * runs through libandiron, whose component `fluent_bit.profiles` sends what Fluent Bit flushes. So
 * `pyroscope.write` brings it to Pyroscope, with its spool if it has one.
 *
 * Fluent Bit keeps a chunk until it is told what became of it:
 *
 *     OK     every consumer has returned from its profiles: a writer with a spool has them on disk,
 *            one without in its queue
 *     RETRY  somebody behind has no room, is stopping, or has not answered in time, or memory is
 *            short. Without an answer the profiles may come twice
 *     ERROR  the chunk cannot be read, or is larger than a queue
 *
 * A flush runs on a stack of 24 KiB in some releases, and its thread waits for nobody else. So a
 * worker of andiron's reads the chunk, and the flush waits.
 *
 * Interface and number of instances are as of the input. */
#include "abi/log.h"
#include "abi/option.h"
#include "agents/fluent-bit/chunk.h"
#include "agents/fluent-bit/host.h"
#include "base/buf.h"
#include "base/clock.h"

#include <andiron/embed.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

#define ANSWER_NS (10 * NS_PER_SEC)

static struct {
	struct host_handle host;
	struct andiron *andiron;
	struct abi_context component; /* its host is NULL: there is none */
} module;

int FLBPluginRegister(struct host_definition *definition);
int FLBPluginInit(struct host_plugin *output);
int FLBPluginFlush(const void *data, size_t n, const char *tag);
int FLBPluginExit(void);

/* --- A chunk on its way --- */

/* Two have it: the flush that waits, and who answers. */
struct job {
	pthread_mutex_t lock;
	pthread_cond_t answered;
	bool has_answer, alone;
	int result;
	const struct andiron_batch *batch;
	uint64_t left_out;
	struct error why;
	size_t n;
	char chunk[];
};

static struct job *job_new(const void *data, size_t n)
{
	struct job *j = malloc(sizeof(*j) + n);
	pthread_condattr_t clock;

	if (!j)
		return NULL;
	memset(j, 0, sizeof(*j));
	pthread_mutex_init(&j->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&j->answered, &clock);
	pthread_condattr_destroy(&clock);
	j->n = n;
	memcpy(j->chunk, data, n);
	return j;
}

/* The second to leave frees it. */
static void leave(struct job *j)
{
	bool last = j->alone;

	j->alone = true;
	pthread_mutex_unlock(&j->lock);
	if (!last)
		return;
	pthread_cond_destroy(&j->answered);
	pthread_mutex_destroy(&j->lock);
	free(j);
}

static void answer(struct job *j, int result)
{
	pthread_mutex_lock(&j->lock);
	j->result = result;
	j->has_answer = true;
	pthread_cond_signal(&j->answered);
	leave(j);
}

static int wait_for(struct job *j)
{
	int64_t until = clock_mono() + ANSWER_NS;
	struct timespec at = {until / NS_PER_SEC, until % NS_PER_SEC};
	int r = 0;

	pthread_mutex_lock(&j->lock);
	while (r == 0 && !j->has_answer)
		r = -pthread_cond_timedwait(&j->answered, &j->lock, &at);
	if (j->has_answer)
		r = j->result;
	leave(j);
	return r;
}

static void read_chunk(void *arg)
{
	struct job *j = arg;
	const struct chunk_head head = {module.component.instance, clock_real()};

	j->result =
		chunk_read((struct str){j->chunk, j->n}, &head, &j->batch, &j->left_out, &j->why);
}

static void on_offered(void *arg, int32_t result)
{
	answer(arg, result);
}

static void say_why(const struct job *j)
{
	char line[sizeof(j->why.text) + 64];

	snprintf(line, sizeof(line), "%" PRIu64 " profiles of a chunk were left out: %s",
		 j->left_out, j->why.text);
	host_say(&module.host, HOST_LOG_ERROR + 1, "", j->left_out ? line : j->why.text);
}

static void offer_chunk(void *arg)
{
	struct job *j = arg;
	const struct abi_context *c = &module.component;
	const struct andiron_batch *batch = j->batch;
	int r = j->result;

	if (j->why.text[0])
		say_why(j);
	if (r == 0 && batch) {
		r = c->host->offer_batch(c->instance, batch, on_offered, j);
		batch->release(batch->owner);
		if (r == 0)
			return;
	}
	answer(j, r);
}

/* --- The component --- */

static const struct andiron_option options[] = {
	OPTION(RECEIVERS, "forward_to", NULL,
	       "Who gets the profiles. Fluent Bit is answered once all of them have them.",
	       .flags = ANDIRON_OPTION_REQUIRED, .since = "0.1"),
};
static const struct andiron_options option_table = ANDIRON_OPTIONS(options);

static int32_t create(const struct andiron_host *host, uint64_t id,
		      const struct andiron_value *args, void **ret_self, struct andiron_error *err)
{
	module.component = (struct abi_context){host, id};
	*ret_self = &module;
	return 0;
}

static int32_t start(void *self, struct andiron_error *err)
{
	return 0;
}

static void stop(void *self)
{
}

static const struct andiron_component component = {
	.size = sizeof(component),
	.flags = ANDIRON_COMPONENT_NO_LABEL,
	.name = "fluent_bit.profiles",
	.summary = "Sends the profiles that Fluent Bit flushes.",
	.options = &option_table,
	.create = create,
	.start = start,
	.stop = stop,
	.destroy = stop,
};

static const struct andiron_component *const components[] = {&component};
static const struct andiron_plugin provided = {
	.size = sizeof(provided),
	.abi_minor = ANDIRON_ABI_MINOR,
	.name = "fluent-bit",
	.version = ANDIRON_VERSION,
	.license = "Apache-2.0",
	.components = components,
	.n_components = 1,
};

/* --- The output --- */

static void on_log(void *context, uint32_t level, const char *component_id, const char *line)
{
	host_say(&module.host, (int)level + HOST_LOG_ERROR, component_id, line);
}

/* The one endpoint that `url` names. What would end the string is left to a configuration. */
static int load_url(const char *url, char **ret_text)
{
	struct buf text = BUF_NULL;
	int r;

	for (const char *c = url; *c; c++)
		if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ') {
			host_say(&module.host, HOST_LOG_ERROR, "",
				 "url has a character that no URL has");
			return -EINVAL;
		}
	buf_printf(&text,
		   "fluent_bit.profiles {\n"
		   "  forward_to = [pyroscope.write.server.receiver]\n"
		   "}\n"
		   "pyroscope.write \"server\" {\n"
		   "  endpoint {\n"
		   "    url = \"%s\"\n"
		   "  }\n"
		   "}\n",
		   url);
	r = text.failed ? -ENOMEM
			: andiron_load(module.andiron, "the built-in configuration", text.p, text.n,
				       ret_text);
	buf_free(&text);
	return r;
}

static int open_and_load(char **ret_text)
{
	const struct host_handle *h = &module.host;
	const char *config = host_property(h, "config"), *url = host_property(h, "url");
	const struct andiron_embed how = {
		.size = sizeof(how),
		.log_level = ANDIRON_LOG_INFO,
		.plugin_dirs = host_property(h, "plugin_dirs"),
		.worker = host_property(h, "worker"),
		.log = on_log,
		.answers = HOST_ANSWERS,
	};
	int r;

	if (!config == !url) {
		host_say(h, HOST_LOG_ERROR, "",
			 "give either url, where Pyroscope is, or config, the path of a "
			 "configuration with a block fluent_bit.profiles");
		return -EINVAL;
	}
	r = andiron_open(&how, &module.andiron, ret_text);
	if (r == 0)
		r = andiron_provide(module.andiron, &provided, ret_text);
	if (r == 0)
		r = config ? andiron_load_file(module.andiron, config, ret_text)
			   : load_url(url, ret_text);
	return r;
}

static int begin(void)
{
	char *text = NULL;
	int r = open_and_load(&text);

	if (r == 0) {
		andiron_text_free(text);
		text = NULL;
		r = andiron_start(module.andiron, &text);
		r = r == -EIO ? 0 : r; /* what has failed is said, and the rest runs */
	}
	if (text || (r < 0 && r != -EINVAL))
		host_say(&module.host, HOST_LOG_ERROR, "", text ? text : strerror(-r));
	andiron_text_free(text);
	if (r == 0 && !module.component.host) {
		host_say(&module.host, HOST_LOG_ERROR, "",
			 "the configuration has no block fluent_bit.profiles, so no profile would "
			 "get anywhere; add one");
		return -EINVAL;
	}
	return r;
}

static void close_all(void)
{
	andiron_close(module.andiron);
	memset(&module, 0, sizeof(module));
}

EXPORT int FLBPluginRegister(struct host_definition *definition)
{
	definition->type = HOST_OUTPUT_PLUGIN;
	definition->proxy = HOST_PROXY_GO;
	definition->flags = 0;
	definition->name = strdup("andiron"); /* Fluent Bit frees both */
	definition->description = strdup("Continuous profiling: profiles to Pyroscope");
	if (host_has_profiles())
		definition->signals = HOST_PROFILES;
	return definition->name && definition->description ? 0 : -1;
}

/* Positive for success; else Fluent Bit does not start. */
EXPORT int FLBPluginInit(struct host_plugin *output)
{
	if (module.host.property) {
		host_say(&module.host, HOST_LOG_ERROR, "",
			 "there is one output of andiron's already, and no room for two");
		return -1;
	}
	module.host = (struct host_handle){*output->api, output->instance,
					   output->api->output_property, "output:andiron"};
	if (!host_has_profiles())
		host_say(&module.host, HOST_LOG_ERROR, "",
			 "this Fluent Bit has no profiles signal that andiron can read: use 5.0 or "
			 "later");
	else if (begin() == 0)
		return 1;
	close_all();
	return -1;
}

static int answer_of(int r)
{
	if (r == 0)
		return HOST_OK;
	return r == -EBADMSG || r == -E2BIG || r == -EINVAL ? HOST_ERROR : HOST_RETRY;
}

EXPORT int FLBPluginFlush(const void *data, size_t n, const char *tag)
{
	const struct abi_context *c = &module.component;
	struct job *j = job_new(data, n);

	if (!j)
		return HOST_RETRY;
	if (c->host->work(c->instance, read_chunk, offer_chunk, j) < 0)
		answer(j, -ENOMEM);
	return answer_of(wait_for(j));
}

EXPORT int FLBPluginExit(void)
{
	if (module.andiron)
		andiron_stop(module.andiron, 5 * NS_PER_SEC, NULL);
	if (module.host.property)
		close_all();
	return 1;
}
