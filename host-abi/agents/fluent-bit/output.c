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
 *            short. What is offered as the time ends may come twice, once for each retry
 *     ERROR  nothing of the chunk can be read, or it is larger than a queue
 *
 * A flush runs on a stack of 24 KiB in some releases, and its thread waits for nobody else. So a
 * worker of andiron's reads the chunk, and the flush waits.
 *
 * Interface and number of instances are as of the input. */
#include "abi/log.h"
#include "abi/option.h"
#include "agents/fluent-bit/host.h"
#include "agents/fluent-bit/job.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/vec.h"

#include <andiron/embed.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

#define ANSWER_NS (10 * NS_PER_SEC)

static struct {
	struct host_handle host;
	struct andiron *andiron;
	struct abi_context component; /* its host is NULL: there is none */
	VEC(struct job *) offered;
} module;

int FLBPluginRegister(struct host_definition *definition);
int FLBPluginInit(struct host_plugin *output);
int FLBPluginFlush(const void *data, size_t n, const char *tag);
int FLBPluginExit(void);

/* --- A chunk on its way --- */

static void read_chunk(void *arg)
{
	const struct chunk_head head = {module.component.instance, clock_real()};

	job_read(arg, &head);
}

/* [loop] [serial], as all that touches module.offered. */
static void on_offered(void *arg, int32_t result)
{
	size_t i = 0;

	while (module.offered.p[i] != arg)
		i++;
	module.offered.p[i] = module.offered.p[--module.offered.n];
	job_answer(arg, result);
}

static void offer_chunk(void *arg)
{
	const struct abi_context *c = &module.component;
	const struct andiron_batch *batch;
	int r = job_ready(arg, &batch);

	if (batch) {
		r = vec_push(&module.offered, arg) ? 0 : -ENOMEM;
		if (r == 0) {
			r = c->host->offer_batch(c->instance, batch, on_offered, arg);
			module.offered.n -= r != 0;
		}
		batch->release(batch->owner);
		if (r == 0)
			return;
	}
	job_answer(arg, r);
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

/* Nobody else answers those any more. */
static void destroy(void *self)
{
	vec_each (&module.offered, j)
		job_answer(*j, -ESHUTDOWN);
	vec_free(&module.offered);
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
	.destroy = destroy,
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
		host_warn(&module.host, &text);
		r = andiron_start(module.andiron, &text);
		/* What has failed is said, and the rest runs, if there is any. */
		if (r == -EIO && !host_property(&module.host, "url"))
			r = 0;
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

/* Why Fluent Bit does not get OK; NULL: this is for the chunk's own text. */
static const char *sentence_of(int r)
{
	switch (r) {
	case -EAGAIN:
		return "a writer has no room now, so Fluent Bit is to come again";
	case -ECANCELED:
	case -ESHUTDOWN:
		return "a writer is stopping, or has not started, so Fluent Bit is to come again";
	case -ENOTCONN:
		return "forward_to of fluent_bit.profiles is empty, so profiles get nowhere: name "
		       "a writer's receiver";
	case -ETIMEDOUT:
		return "there was no answer within 10 s, so Fluent Bit is to come again, and "
		       "profiles may come twice";
	case -ENOMEM:
		return "memory is short, so Fluent Bit is to come again";
	case -E2BIG:
		return "a chunk is larger than the queue of a writer, and is dropped";
	default:
		return NULL;
	}
}

static int answer_of(int r)
{
	if (r == 0)
		return HOST_OK;
	return r == -EBADMSG || r == -E2BIG || r == -EINVAL ? HOST_ERROR : HOST_RETRY;
}

/* On Fluent Bit's own thread: what others say does not reach a log that is a file. */
static void say(int r, const char *why)
{
	const char *sentence = sentence_of(r);
	int level = answer_of(r) == HOST_ERROR ? HOST_LOG_ERROR : HOST_LOG_WARN;

	if (why[0])
		host_say(&module.host, level, "", why);
	if (sentence || (r < 0 && !why[0]))
		host_say(&module.host, level, "", sentence ? sentence : strerror(-r));
}

EXPORT int FLBPluginFlush(const void *data, size_t n, const char *tag)
{
	const struct abi_context *c = &module.component;
	struct job *j = job_new(data, n);
	struct error why;
	int r;

	if (!j) {
		say(-ENOMEM, "");
		return HOST_RETRY;
	}
	r = c->host->work(c->instance, read_chunk, offer_chunk, j);
	if (r < 0)
		job_answer(j, r);
	r = job_wait(j, ANSWER_NS, &why);
	say(r, why.text);
	return answer_of(r);
}

EXPORT int FLBPluginExit(void)
{
	if (module.andiron)
		andiron_stop(module.andiron, 5 * NS_PER_SEC, NULL);
	if (module.host.property)
		close_all();
	return 1;
}
