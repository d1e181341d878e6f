/* SPDX-License-Identifier: Apache-2.0 */
/* See profiler.h. */
#include "agents/kit/profiler.h"

#include "base/buf.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* All of this machine: a unit of systemd is a service, and so are all processes of one name that
 * belong to none. */
static void put_built_in(struct buf *b, const char *consumer, uint64_t interval_ms)
{
	buf_printf(b,
		   "discovery.process \"all\" {}\n"
		   "discovery.relabel \"all\" {\n"
		   "  targets = discovery.process.all.targets\n"
		   "  rule {\n"
		   "    source_labels = [\"__meta_process_comm\"]\n"
		   "    target_label  = \"service_name\"\n"
		   "  }\n"
		   "  rule {\n"
		   "    source_labels = [\"__meta_process_systemd_unit\"]\n"
		   "    regex         = \"(.+)\"\n"
		   "    target_label  = \"service_name\"\n"
		   "  }\n"
		   "}\n"
		   "pyroscope.ebpf \"all\" {\n"
		   "  targets          = discovery.relabel.all.output\n"
		   "  targets_only     = false\n"
		   "  default_target   = {\"service_name\" = \"other\"}\n"
		   "  forward_to       = [embed.profiles.%s.receiver]\n"
		   "  collect_interval = \"%" PRIu64 "ms\"\n"
		   "}\n"
		   "embed.profiles \"%s\" {}\n",
		   consumer, interval_ms < 1000 ? 1000 : interval_ms, consumer);
}

static int load(const struct profiler_options *o, struct andiron *a, char **ret_text)
{
	struct buf text = BUF_NULL;
	int r;

	if (o->config)
		return andiron_load_file(a, o->config, ret_text);
	put_built_in(&text, o->consumer, o->interval_ms);
	r = text.failed ? -ENOMEM
			: andiron_load(a, "the built-in configuration", text.p, text.n, ret_text);
	buf_free(&text);
	return r;
}

int profiler_open(const struct profiler_options *options, struct andiron **ret, char **ret_text)
{
	struct andiron_embed how = options->embed;
	int r;

	*ret = NULL;
	how.size = sizeof(how);
	if (!how.worker && !options->config && !options->names)
		how.worker = "";
	r = andiron_open(&how, ret, ret_text);
	if (r == 0)
		r = andiron_on_profiles(*ret, options->consumer, ANDIRON_FORM_BATCH, options->take,
					how.context, ret_text);
	return r == 0 ? load(options, *ret, ret_text) : r;
}
