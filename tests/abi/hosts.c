/* SPDX-License-Identifier: Apache-2.0 */
/* See hosts.h. What is refused is refused by functions of the same form, so every member is there,
 * as the ABI wants. */
#include "hosts.h"

#include "abi/target-list.h"
#include "base/file.h"

#include <fcntl.h>

#define N_MEMBERS 19

static int32_t no_error_add(struct andiron_error *err, int32_t code, const char *text, uint64_t len)
{
	return code;
}

static void no_report_add(struct andiron_report *report, uint32_t severity,
			  const struct andiron_value *at, const char *text, uint64_t len)
{
}

static int32_t no_log_enabled(uint64_t instance, uint32_t level)
{
	return 0;
}

static void no_log(uint64_t instance, uint32_t level, const struct andiron_str *message,
		   const struct andiron_kv *kv, uint64_t n_kv)
{
}

static int32_t no_watch_add(uint64_t instance, int32_t fd, uint32_t events, andiron_watch_fn fn,
			    void *arg, uint64_t *ret_watch)
{
	return -ENOSYS;
}

static int32_t no_watch_modify(uint64_t instance, uint64_t watch, uint32_t events)
{
	return -ENOSYS;
}

static void no_remove(uint64_t instance, uint64_t watch)
{
}

static int32_t no_timer_set(uint64_t instance, int64_t after_ns, int64_t every_ns,
			    andiron_call_fn fn, void *arg, uint64_t *ret_timer)
{
	return -ENOSYS;
}

static int32_t no_post(uint64_t instance, andiron_call_fn fn, void *arg)
{
	return -ENOSYS;
}

static int32_t no_work(uint64_t instance, andiron_call_fn run, andiron_call_fn done, void *arg)
{
	return -ENOSYS;
}

static int32_t no_spawn(uint64_t instance, const struct andiron_spawn *spawn, andiron_spawn_fn fn,
			void *arg)
{
	return -ENOSYS;
}

static int32_t no_send_batch(uint64_t instance, const struct andiron_batch *batch)
{
	return 0;
}

static int32_t no_send_targets(uint64_t instance, const char *export_name,
			       const struct andiron_targets *update)
{
	return 0;
}

static void no_ledger_add(uint64_t instance, uint32_t entry, const struct andiron_str *reason,
			  uint64_t samples)
{
}

static void no_ledger_set(uint64_t instance, uint32_t entry, uint64_t samples)
{
}

static void no_health(uint64_t instance, uint32_t state, const struct andiron_str *message)
{
}

static void no_drained(uint64_t instance)
{
}

static int32_t no_extension(uint64_t instance, const char *id, struct andiron_extension *ret)
{
	return -ENOENT;
}

/* Every member does nothing. */
static const struct andiron_host refusing = {
	.size = offsetof(struct andiron_host, request_targets),
	.abi_minor = ANDIRON_ABI_MINOR,
	.error_add = no_error_add,
	.report_add = no_report_add,
	.log_enabled = no_log_enabled,
	.log = no_log,
	.watch_add = no_watch_add,
	.watch_modify = no_watch_modify,
	.watch_remove = no_remove,
	.timer_set = no_timer_set,
	.timer_cancel = no_remove,
	.post = no_post,
	.work = no_work,
	.spawn = no_spawn,
	.send_batch = no_send_batch,
	.send_targets = no_send_targets,
	.ledger_add = no_ledger_add,
	.ledger_set = no_ledger_set,
	.health = no_health,
	.drained = no_drained,
	.extension = no_extension,
};

/* `is_silent`: who lacks it learns nothing. */
static const struct member {
	const char *name;
	size_t offset;
	bool is_silent;
} members[] = {
#define MEMBER(name_, silent_) {#name_, offsetof(struct andiron_host, name_), silent_}
	MEMBER(error_add, true),     MEMBER(report_add, true),
	MEMBER(log_enabled, true),   MEMBER(log, true),
	MEMBER(watch_add, false),    MEMBER(watch_modify, true),
	MEMBER(watch_remove, true),  MEMBER(timer_set, false),
	MEMBER(timer_cancel, true),  MEMBER(post, false),
	MEMBER(work, false),	     MEMBER(spawn, false),
	MEMBER(send_batch, true),    MEMBER(send_targets, true),
	MEMBER(ledger_add, true),    MEMBER(ledger_set, true),
	MEMBER(health, true),	     MEMBER(drained, true),
	MEMBER(extension, false),
};
_Static_assert(sizeof(members) / sizeof(members[0]) == N_MEMBERS, "all up to extension");
_Static_assert(offsetof(struct andiron_host, request_targets) -
			       offsetof(struct andiron_host, error_add) ==
		       N_MEMBERS * sizeof(void (*)(void)),
	       "all up to extension");

/* The host of the trial does the member of that name. */
static void allow(struct trial *t, const struct member *m)
{
	memcpy((char *)&t->host + m->offset, (const char *)andiron_min_host() + m->offset,
	       sizeof(void (*)(void)));
}

/* In place of a member that is never called, so its arguments do not matter. */
static _Noreturn void was_called(void)
{
	test_fail(__FILE__, __LINE__, "the component called what the page says it does not");
}

static void forbid(struct trial *t, const struct member *m)
{
	void (*const fn)(void) = was_called;

	memcpy((char *)&t->host + m->offset, (const void *)&fn, sizeof(fn));
}

/* Cell `column` of a table's line, without blanks. */
static struct str cell(struct str line, size_t column)
{
	struct str text = STR_NULL;

	for (size_t i = 0; i <= column; i++)
		text = str_cut(&line, '|');
	return str_trim(text);
}

/* Which members the component must have, and which it never calls. */
static void read_page(const char *component, bool ret_must[N_MEMBERS], bool ret_never[N_MEMBERS])
{
	char quoted[64];
	struct str rest;
	struct buf page = {0};
	size_t column = 0, n_found = 0;

	expect_eq(file_read(AT_FDCWD, getenv("TEST_HOSTS_PAGE"), &page, 1 << 20), 0);
	rest = buf_str(&page);
	snprintf(quoted, sizeof(quoted), "`%s`", component);
	while (rest.n > 0) {
		struct str line = str_cut(&rest, '\n');
		struct str name = cell(line, 1);

		for (size_t i = 2; str_is(name, "member") && i < 8; i++)
			if (str_is(cell(line, i), quoted))
				column = i;
		for (size_t i = 0; column && i < N_MEMBERS; i++) {
			snprintf(quoted, sizeof(quoted), "`%s`", members[i].name);
			if (!str_is(name, quoted))
				continue;
			ret_must[i] = str_is(cell(line, column), "must");
			ret_never[i] = str_is(cell(line, column), "–");
			expect(ret_must[i] || ret_never[i] || str_is(cell(line, column), "may"));
			n_found++;
		}
	}
	buf_free(&page);
	expect_eq(n_found, N_MEMBERS);
}

static void count_targets(void *context, const char *export_name,
			  const struct andiron_targets *update)
{
	((struct trial *)context)->n_rows += update->n_rows;
}

static void count_samples(void *context, const struct andiron_batch *batch)
{
	((struct trial *)context)->n_samples += batch->samples;
}

static const struct andiron_component *load(const struct job *job)
{
	struct str rest = str_of(getenv("TEST_PLUGIN_FILES"));

	while (rest.n > 0) {
		struct str file = str_cut(&rest, ':');
		const struct andiron_component *found;
		const char *why = "";
		char path[4096];

		if (!str_ends(file, str_of(job->plugin)))
			continue;
		snprintf(path, sizeof(path), "%.*s", STR_FMT(file));
		found = andiron_min_find(path, job->component, &why);
		if (!found)
			test_fail(__FILE__, __LINE__, "%s: %s", path, why);
		return found;
	}
	test_fail(__FILE__, __LINE__, "%s is not among TEST_PLUGIN_FILES", job->plugin);
}

static bool is_unwell(const struct trial *t)
{
	return t->part.health == ANDIRON_HEALTH_UNHEALTHY &&
	       strstr(t->part.health_text, strerror(ENOSYS));
}

/* Runs it until it is done, or says that it is not well, or nothing is left to wait for. The result
 * is that of create and start. */
static int run(const struct job *job, struct trial *t, bool until_done)
{
	const struct andiron_value none = andiron_min_map(NULL, NULL, 0);
	const struct andiron_component *component = load(job);
	int r;

	t->part.host = &t->host;
	t->part.context = t;
	t->part.on_targets = count_targets;
	t->part.on_batch = count_samples;
	t->part.extension = job->extension;
	expect_eq(andiron_min_open(&t->loop), 0);
	r = andiron_min_create(&t->part, &t->loop, component, job->args ? job->args() : &none);
	if (r == 0)
		r = andiron_min_start(&t->part);
	if (r == 0 && job->give)
		job->give(t);
	while (r == 0 && until_done && !job->is_done(t) && !is_unwell(t))
		andiron_min_turn(&t->loop, 100);
	andiron_min_end(&t->part);
	andiron_min_close(&t->loop);
	return r;
}

static void check_without(const struct job *job, const bool must[N_MEMBERS], size_t missing)
{
	const struct member *m = &members[missing];
	struct trial t = {.host = refusing};
	size_t health = 0;
	int r;

	for (size_t i = 0; i < N_MEMBERS; i++) {
		if (must[i] && i != missing)
			allow(&t, &members[i]);
		if (strcmp(members[i].name, "health") == 0)
			health = i;
	}
	allow(&t, &members[0]); /* error_add and health: what they say is looked at */
	allow(&t, &members[health]);
	r = run(job, &t, !m->is_silent && !job->is_trusting);
	printf("# without %s: %d, \"%s\", \"%s\"\n", m->name, r, t.part.error.text,
	       t.part.health_text);
	if (m->is_silent || job->is_trusting)
		return;
	expect(!job->is_done(&t));
	expect(r < 0 ? t.part.error.text[0] : is_unwell(&t));
}

void job_check(const struct job *job)
{
	bool must[N_MEMBERS] = {false}, never[N_MEMBERS] = {false};
	struct trial least = {.host = refusing}, nothing = {.host = refusing};

	if (!getenv("TEST_HOSTS_PAGE") || !getenv("TEST_PLUGIN_FILES"))
		test_skip("TEST_HOSTS_PAGE is not set: run it by `meson test`");
	read_page(job->component, must, never);
	for (size_t i = 0; i < N_MEMBERS; i++)
		if (must[i])
			allow(&least, &members[i]);
		else if (never[i])
			forbid(&least, &members[i]);
	expect_eq(run(job, &least, true), 0);
	expect(job->is_done(&least));
	for (size_t i = 0; i < N_MEMBERS; i++)
		if (must[i])
			check_without(job, must, i);
	run(job, &nothing, false);
}

void trial_give_target(struct trial *t, struct str name, struct str value)
{
	const struct target_label label = {name, value};
	const struct andiron_targets *update = NULL;
	struct target_list *list = target_list_new(1);

	expect(list);
	expect_eq(target_list_set(list, 1, 1, &label, 1), 0);
	expect_eq(target_list_flush(list, &update), 0);
	t->part.component->targets(t->part.self, "targets", update);
	update->release(update->owner);
	target_list_free(list);
}
