/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration in the making: sections that settings are put into, notes on what has no
 * counterpart, and at the end the whole text. Its layout is left to `andiron fmt`'s printer, which
 * also proves that it is a configuration. Appends that fail are found at the end (buf.h). */
#pragma once

#include "base/buf.h"
#include "cli/convert/settings.h"

struct conversion {
	const char *from; /* the other profiler's name */
	struct settings settings;
	struct buf notes, sections[N_SECTIONS], rules, writers, receivers;
	bool pods, processes, cgroups; /* what the rules look at */
	size_t n_writers;
	bool only_targets; /* rules may drop processes */
};

void conversion_fini(struct conversion *c);

/* A line of the comment at the top. */
void conversion_note(struct conversion *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* A quoted string with $(NAME), ${NAME} and ${env:NAME} as sys.env("NAME"). */
void conversion_expression(struct buf *b, struct str text);

/* `name = text` as a line of that section. */
void conversion_put(struct conversion *c, enum section section, const char *name, struct str text);

/* Puts all settings of the list where their rows say, and notes what has none. 0, -ENOMEM, or
 * -EINVAL with a text that names the setting. */
int conversion_apply(struct conversion *c, struct error *err);

/* `put` of settings that both profilers have. */
int conversion_tracers(struct conversion *c, const struct setting *s, struct error *err);
int conversion_off_cpu(struct conversion *c, const struct setting *s, struct error *err);

/* "host:port" or a URL, as a URL; an empty one is `instead`, with a note that names `setting`. */
void conversion_url(struct conversion *c, struct str address, bool plain_text, const char *instead,
		    const char *setting);

/* Ends a writer, whose sections then begin anew. `protocol`: of otlp.write, or NULL. */
void conversion_end_writer(struct conversion *c, const char *component, struct str label,
			   const char *protocol);

/* A file that people have at hand beside the profiler's own, and that looks like one: an object of
 * Kubernetes, which the file is in, or the flags. 0, or -EINVAL with a text. */
int conversion_check_file(struct yaml_view *view, const char *path, struct error *err);

/* What the other profiler does where it is told nothing: an attribute of the sampler, if it is not
 * there. */
void conversion_default(struct conversion *c, const char *name, const char *text);

/* One rule that copies a label. */
void conversion_copy_rule(struct conversion *c, const char *from, const char *to);

/* The whole, appended to `out`, not yet laid out. */
void conversion_finish(struct conversion *c, struct buf *out);

/* The profilers. Each reads the file's text (may be empty) and flags, and makes the conversion. 0,
 * -ENOMEM, or a negative errno with a text. */
int convert_parca_agent(struct conversion *c, const char *path, struct str text, int argc,
			char **argv, struct error *err);
int convert_otel_profiler(struct conversion *c, const char *path, struct str text, int argc,
			  char **argv, struct error *err);

/* Of a Collector's file: its pipelines of profiles. */
int convert_collector(struct conversion *c, struct yaml_view *view, struct error *err);
/* The profiler's own settings, as flags or as its receiver in a Collector. */
extern const struct counterpart otel_profiler_settings[];
