/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of andiron/embed.h. Contracts there; each is a job of the instance's thread. */
#include "base/cleanup.h"
#include "base/clock.h"
#include "embed/instance.h"
#include "host/registry.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAX_DIRS      64u
#define NAME_MAX_TEXT 200u

/* What may be added to the clock. */
#define LONGEST_DRAIN_NS (INT64_MAX / 2)

/* --- Opening and closing --- */

static int copy_texts(struct andiron *a)
{
	const char *dirs = a->how.plugin_dirs, *worker = a->how.worker;

	if (!dirs)
		dirs = ANDIRON_PLUGIN_DIR;
	if (!worker)
		worker = access(ANDIRON_COMMAND, X_OK) == 0 ? ANDIRON_COMMAND : "";
	a->how.plugin_dirs = arena_str(&a->arena, str_of(dirs)).p;
	a->how.worker = arena_str(&a->arena, str_of(worker)).p;
	return a->how.plugin_dirs && a->how.worker ? 0 : -ENOMEM;
}

static int copy_how(struct andiron_embed *copy, const struct andiron_embed *how, char **ret_text)
{
	const unsigned char *bytes = (const void *)how;

	if (!how || how->size < sizeof(how->size))
		return embed_refuse(ret_text, -EINVAL,
				    "the member `size` of struct andiron_embed is 0");
	for (size_t i = sizeof(*how); i < how->size; i++)
		if (bytes[i])
			return embed_refuse(
				ret_text, -E2BIG,
				"the program asks for what only a newer libandiron knows");
	memcpy(copy, how, how->size < sizeof(*how) ? how->size : sizeof(*how));
	if (copy->reserved)
		return embed_refuse(ret_text, -E2BIG, "a reserved member is not 0");
	if (copy->answers && registry_allow_answers(str_of(copy->answers)) < 0)
		return embed_refuse(ret_text, -EINVAL,
				    "the member `answers` names more than zstd and protobuf-c");
	return 0;
}

static void release(struct andiron *a)
{
	pthread_cond_destroy(&a->changed);
	pthread_mutex_destroy(&a->lock);
	arena_free(&a->arena);
	free(a);
}

const char *andiron_version(void)
{
	return ANDIRON_VERSION;
}

int32_t andiron_open(const struct andiron_embed *how, struct andiron **ret, char **ret_text)
{
	struct andiron *a = calloc(1, sizeof(*a));
	int r = a ? 0 : -ENOMEM;

	if (ret_text)
		*ret_text = NULL;
	if (!a)
		return r;
	a->pid = getpid();
	a->tail = &a->jobs;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->changed, NULL);
	r = copy_how(&a->how, how, ret_text);
	if (r == 0)
		r = copy_texts(a);
	if (r == 0) {
		r = embed_thread_start(a);
		if (r < 0)
			embed_refuse(ret_text, r, "cannot start a thread");
	}
	if (r < 0) {
		release(a);
		return r;
	}
	pthread_mutex_lock(&a->lock);
	while (!a->ready)
		pthread_cond_wait(&a->changed, &a->lock);
	r = a->error.code;
	pthread_mutex_unlock(&a->lock);
	if (r < 0) {
		embed_refuse(ret_text, r, a->error.text);
		pthread_join(a->thread, NULL);
		release(a);
		return r;
	}
	*ret = a;
	return 0;
}

static int end_run(struct andiron *a, struct embed_job *job)
{
	const int64_t *deadline_ns = job->arg;

	if (a->stage != EMBED_RUNNING)
		return 0;
	if (*deadline_ns > 0)
		a->host->options.drain_ns = *deadline_ns < LONGEST_DRAIN_NS ? *deadline_ns
									    : LONGEST_DRAIN_NS;
	host_stop(a->host);
	if (*deadline_ns <= 0)
		host_stop(a->host);
	return 0;
}

int32_t andiron_close(struct andiron *a)
{
	int64_t at_once = 0;
	int r = a ? embed_admit(a, false, NULL) : 0;

	if (!a || r < 0)
		return r;
	embed_call(a, end_run, &at_once, NULL);
	pthread_mutex_lock(&a->lock);
	a->closing = true;
	pthread_cond_broadcast(&a->changed);
	pthread_mutex_unlock(&a->lock);
	pthread_join(a->thread, NULL);
	if (!a->stuck)
		release(a);
	return 0;
}

void andiron_text_free(char *text)
{
	free(text);
}

/* --- Before it starts --- */

static int provide(struct andiron *a, struct embed_job *job)
{
	const struct andiron_plugin *plugin = job->arg;
	struct error err = ERROR_NULL;

	if (a->registry)
		return embed_say(job,
				 error_set(&err, -EBUSY,
					   "there is a configuration already: components "
					   "are provided before the first one"),
				 &err);
	if (registry_check(plugin, &err) < 0)
		return embed_say(job, -EINVAL, &err);
	return vec_push(&a->plugins, plugin) ? 0 : -ENOMEM;
}

int32_t andiron_provide(struct andiron *a, const struct andiron_plugin *plugin, char **ret_text)
{
	int r = embed_admit(a, false, ret_text);

	if (r == 0 && !plugin)
		r = -EINVAL;
	return r < 0 ? r : embed_call(a, provide, (void *)(uintptr_t)plugin, ret_text);
}

const struct consumer *embed_consumer(const struct andiron *a, const char *name, bool targets)
{
	vec_each (&a->consumers, at)
		if (strcmp((*at)->name, name) == 0 && ((*at)->form == 0) == targets)
			return *at;
	return NULL;
}

static int register_consumer(struct andiron *a, struct embed_job *job)
{
	const struct consumer *asked = job->arg;
	struct error err = ERROR_NULL;
	struct consumer *copy;

	if (a->stage != EMBED_OPEN)
		return embed_say(job,
				 error_set(&err, -EBUSY,
					   "it runs already: consumers are registered before"),
				 &err);
	if (embed_consumer(a, asked->name, asked->form == 0))
		return embed_say(job,
				 error_set(&err, -EEXIST,
					   "somebody is registered as \"%s\" already", asked->name),
				 &err);
	copy = calloc(1, sizeof(*copy));
	if (!copy || !vec_reserve(&a->consumers, 1)) {
		free(copy);
		return -ENOMEM;
	}
	*copy = *asked;
	copy->name = arena_str(&a->arena, str_of(asked->name)).p;
	if (!copy->name) {
		free(copy);
		return -ENOMEM;
	}
	a->consumers.p[a->consumers.n++] = copy;
	return 0;
}

static int add_consumer(struct andiron *a, struct consumer asked, char **ret_text)
{
	int r = embed_admit(a, false, ret_text);

	if (r < 0)
		return r;
	if (!asked.name || !*asked.name || strlen(asked.name) > NAME_MAX_TEXT)
		return embed_refuse(ret_text, -EINVAL,
				    "a consumer needs a name of at most 200 bytes");
	return embed_call(a, register_consumer, &asked, ret_text);
}

int32_t andiron_on_profiles(struct andiron *a, const char *name, uint32_t form,
			    andiron_profile_fn fn, void *context, char **ret_text)
{
	if (!fn || (form != ANDIRON_FORM_BATCH && form != ANDIRON_FORM_PPROF)) {
		if (ret_text)
			*ret_text = NULL;
		return embed_refuse(ret_text, -EINVAL, "no function, or a form that is not known");
	}
	return add_consumer(a,
			    (struct consumer){
				    .name = name, .form = form, .profiles = fn, .context = context},
			    ret_text);
}

int32_t andiron_on_targets(struct andiron *a, const char *name, andiron_targets_fn fn,
			   void *context, char **ret_text)
{
	if (!fn) {
		if (ret_text)
			*ret_text = NULL;
		return embed_refuse(ret_text, -EINVAL, "no function");
	}
	return add_consumer(a, (struct consumer){.name = name, .targets = fn, .context = context},
			    ret_text);
}

/* --- Configurations --- */

/* Once, with the first configuration: then all that is provided is known. */
static int open_registry(struct andiron *a)
{
	const char *dirs[MAX_DIRS + 1] = {NULL};
	struct str rest = str_of(a->how.plugin_dirs);
	size_t n = 0;

	if (a->registry)
		return 0;
	while (rest.n > 0 && n < MAX_DIRS) {
		dirs[n] = arena_str(&a->arena, str_cut(&rest, ':')).p;
		if (!dirs[n++])
			return -ENOMEM;
	}
	if (!vec_reserve(&a->plugins, 2))
		return -ENOMEM;
	a->plugins.p[a->plugins.n] = &embed_plugin;
	a->plugins.p[a->plugins.n + 1] = NULL;
	return registry_new(dirs, a->plugins.p, false, &a->registry);
}

static int make_plan(struct registry *registry, struct config *config, struct buf *text,
		     struct plan **ret)
{
	char *findings = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&findings, &n);
	int r;

	if (!out)
		return -ENOMEM;
	r = config_plan(config, registry, false, out, ret);
	fclose(out);
	if (n > 0)
		buf_append(text, findings, n);
	free(findings);
	return r;
}

/* Takes the plan over. */
static int change_to(struct andiron *a, struct plan *plan, struct embed_job *job)
{
	struct error err = ERROR_NULL;
	int r;

	if (a->stage == EMBED_OPEN) {
		plan_free(a->plan);
		a->plan = plan;
		return 0;
	}
	r = host_reload(a->host, plan, &err);
	return r < 0 ? embed_say(job, r, &err) : 0;
}

static int take_config(struct andiron *a, struct embed_job *job)
{
	struct config *config = job->arg;
	struct registry *registry = NULL;
	struct error err = ERROR_NULL;
	struct plan *plan = NULL;
	int r = open_registry(a);

	if (r == 0 && a->stage == EMBED_ENDED) {
		buf_str_append(&job->text, STR("it was stopped; open another instance"));
		r = -EINVAL;
	}
	/* Plugin files that were replaced are taken up by whoever runs. */
	if (r == 0 && a->stage == EMBED_RUNNING && registry_renew(a->registry, &registry, &err) < 0)
		r = embed_say(job, err.code, &err);
	if (r == 0)
		r = make_plan(registry ? registry : a->registry, config, &job->text, &plan);
	if (r == 0)
		r = change_to(a, plan, job);
	host_note_configuration(a->host, r == 0);
	if (r < 0) {
		registry_free(registry);
		config_free(config);
		return r;
	}
	config_free(a->config);
	a->config = config;
	if (registry) {
		registry_free(a->registry);
		a->registry = registry;
	}
	return 0;
}

/* Takes the configuration over; r < 0: it could not be read. */
static int load(struct andiron *a, struct config *config, int r, const struct error *err,
		char **ret_text)
{
	if (r == 0)
		return embed_call(a, take_config, config, ret_text);
	config_free(config);
	return embed_refuse(ret_text, r, err->text);
}

int32_t andiron_load(struct andiron *a, const char *name, const char *text, uint64_t n,
		     char **ret_text)
{
	struct error err = ERROR_NULL;
	struct config *config;
	int r = embed_admit(a, false, ret_text);

	if (r < 0)
		return r;
	config = config_new();
	if (!config || (!text && n))
		r = config ? -EINVAL : -ENOMEM;
	if (r == 0)
		r = config_add_text(config, name ? name : "(configuration)", (struct str){text, n});
	return load(a, config, r, &err, ret_text);
}

int32_t andiron_load_file(struct andiron *a, const char *path, char **ret_text)
{
	struct error err = ERROR_NULL;
	struct config *config;
	int r = embed_admit(a, false, ret_text);

	if (r < 0)
		return r;
	config = config_new();
	if (!config || !path)
		r = config ? -EINVAL : -ENOMEM;
	if (r == 0)
		r = config_add_path(config, path, &err);
	return load(a, config, r, &err, ret_text);
}

/* --- Running --- */

static int begin_run(struct andiron *a, struct embed_job *job)
{
	struct error err = ERROR_NULL;
	int r;

	if (a->stage != EMBED_OPEN)
		return embed_say(job, error_set(&err, -EALREADY, "it was started before"), &err);
	if (!a->plan)
		return embed_say(job,
				 error_set(&err, -EINVAL,
					   "there is no configuration: load one first"),
				 &err);
	r = host_load(a->host, take_ptr(a->plan), &err);
	if (r < 0)
		return embed_say(job, r, &err);
	pthread_mutex_lock(&a->lock);
	a->stage = EMBED_RUNNING;
	pthread_mutex_unlock(&a->lock);
	return 0;
}

int32_t andiron_start(struct andiron *a, char **ret_text)
{
	struct error err;
	int r = embed_admit(a, false, ret_text);

	if (r == 0)
		r = embed_call(a, begin_run, NULL, ret_text);
	if (r < 0)
		return r;
	pthread_mutex_lock(&a->lock);
	while (!a->live && a->stage != EMBED_ENDED)
		pthread_cond_wait(&a->changed, &a->lock);
	err = a->error;
	if (!a->live && err.code == 0)
		error_set(&err, -ECANCELED, "it was stopped while it started");
	pthread_mutex_unlock(&a->lock);
	return err.code < 0 ? embed_refuse(ret_text, err.code, err.text) : 0;
}

static int sum_up(struct andiron *a, struct embed_job *job)
{
	buf_str_append(&job->text, STR("not everything was delivered within the deadline: "));
	return host_ledger_line(a->host, &job->text);
}

int32_t andiron_stop(struct andiron *a, int64_t deadline_ns, char **ret_text)
{
	int64_t begun = clock_mono();
	int r = embed_admit(a, false, ret_text);

	if (r < 0)
		return r;
	embed_call(a, end_run, &deadline_ns, NULL);
	pthread_mutex_lock(&a->lock);
	while (a->stage == EMBED_RUNNING)
		pthread_cond_wait(&a->changed, &a->lock);
	pthread_mutex_unlock(&a->lock);
	if (deadline_ns <= 0 || clock_mono() - begun < deadline_ns)
		return 0;
	embed_call(a, sum_up, NULL, ret_text);
	return -ETIMEDOUT;
}

/* --- What it says of itself --- */

static int write_state(struct andiron *a, struct embed_job *job)
{
	switch (*(const uint32_t *)job->arg) {
	case ANDIRON_READ_METRICS:
		return host_metrics(a->host, &job->text);
	case ANDIRON_READ_HEALTH:
		return host_health_json(a->host, &job->text);
	case ANDIRON_READ_LEDGER:
		return host_ledger_json(a->host, &job->text);
	case ANDIRON_READ_TARGETS:
		return host_targets_json(a->host, &job->text);
	default:
		return -EINVAL;
	}
}

/* What was written before a failure is no answer, and must not be taken for its reason. */
static int read_state(struct andiron *a, struct embed_job *job)
{
	int r = write_state(a, job);

	if (r < 0)
		buf_clear(&job->text);
	if (r == -EBUSY)
		buf_str_append(&job->text, STR("a component cannot answer now: ask again"));
	return r;
}

int32_t andiron_read(struct andiron *a, uint32_t what, char **ret_text)
{
	int r = embed_admit(a, EMBED_FROM_WORKERS, ret_text);

	return r < 0 ? r : embed_call(a, read_state, &what, ret_text);
}
