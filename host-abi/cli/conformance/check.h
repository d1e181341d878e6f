/* SPDX-License-Identifier: Apache-2.0 */
/* What `andiron validate-plugin` asks of a plugin: one rule each, from the text of the ABI
 * (andiron/abi.h). A check runs in a process of its own, since a plugin that breaks a rule may
 * crash or hang, and since no plugin is ever unloaded. */
#pragma once

#include "base/buf.h"
#include "cli/options.h"

#include <andiron/plugin.h>

#include <stdatomic.h>

enum outcome {
	OUTCOME_NONE, /* the process has ended before it said */
	OUTCOME_PASSED,
	OUTCOME_FAILED,
	OUTCOME_SKIPPED,
	OUTCOME_OTHER_KIND, /* the check is not about such a component */
};

/* What a check is about. */
enum subject {
	SUBJECT_FILE,      /* the bytes of the file; nothing of it runs */
	SUBJECT_LOADING,   /* a file that can be loaded, and that the check loads itself */
	SUBJECT_PLUGIN,    /* the file, loaded */
	SUBJECT_COMPONENT, /* each component of it */
};

/* What became of a check, in memory that its process shares with ours. So what it was doing is
 * known also where it crashed. */
struct outcome_note {
	uint32_t outcome;
	uint32_t n_components; /* of the plugin, once it is loaded */
	char component[80];    /* "": it is about the file */
	atomic_uint n_steps;   /* that it has begun: one may take so long, not all */
	char doing[120];       /* what ran last: "create, allocation 12 fails" */
	char text[800];        /* what went wrong, what it needs, or a figure */
};

/* What the command line says. */
struct trial_options {
	struct texts arguments; /* "COMPONENT:PATH=EXPRESSION" */
	struct texts libraries; /* allowed besides those that are known */
};

struct trial {
	const char *file;
	const struct trial_options *options;
	const struct check *check;
	uint32_t index; /* of the component */
	void *library;
	const struct andiron_plugin *plugin;
	const struct andiron_component *component;
	struct outcome_note *note;
};

struct check {
	const char *name;    /* stable: scripts know it */
	const char *meaning; /* what must hold, half a line */
	const char *why;     /* what happens where it does not */
	const char *remedy;  /* what its author does then */
	enum subject subject;
	void (*run)(struct trial *t);
};

/* Each ends with a NULL name. */
extern const struct check file_checks[], table_checks[], lifecycle_checks[], resource_checks[],
	option_checks[], batch_checks[], behaviour_checks[], runtime_checks[];

/* For `run`, in the check's process. The first verdict counts; a check that gives none has passed.
 */
void trial_fail(struct trial *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The text says what it needs: "CAP_BPF". */
void trial_skip(struct trial *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Nothing is said of the check: it is about other kinds of components. */
void trial_other_kind(struct trial *t);
/* A figure that is shown with "ok". */
void trial_figure(struct trial *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What runs now, for the message of a crash. */
void trial_doing(struct trial *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline bool trial_is_over(const struct trial *t)
{
	return t->note->outcome != OUTCOME_NONE;
}

/* Runs a check in a child process, at most a minute. The verdict is in `note`, which trial_note_new
 * has made; every text in it is printable. 0, or a negative errno where there is no process. */
int trial_run(const struct trial *t);
struct outcome_note *trial_note_new(void);
