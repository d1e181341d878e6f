/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler on a host that does no more than docs/hosts.md says that it must. It samples a child
 * that computes. */
#include "hosts.h"

#include <andiron/host-min-objects.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

static struct andiron_min_objects objects;
static char pid[16];

static int32_t offer(void *context, const char *id, struct andiron_extension *ret)
{
	if (strcmp(id, ANDIRON_OBJECTS_ID) != 0)
		return -ENOENT;
	*ret = (struct andiron_extension){andiron_min_objects_table(), &objects};
	return 0;
}

static const struct andiron_value *every_second(void)
{
	static struct andiron_str key = {"collect_interval", 16};
	static struct andiron_value second, args;

	second = andiron_min_number(ANDIRON_VALUE_INT, 1000000000);
	args = andiron_min_map(&key, &second, 1);
	return &args;
}

static void give_child(struct trial *t)
{
	trial_give_target(t, STR("__process_pid__"), str_of(pid));
}

static bool sent_samples(const struct trial *t)
{
	return t->n_samples > 0;
}

static _Noreturn void compute(void)
{
	for (volatile unsigned int i = 0;; i++)
		;
}

/* The page's column of pyroscope.ebpf is right, and all objects are given back. */
TEST(a_process_is_sampled_on_the_least_host)
{
	pid_t child;

	if (geteuid() != 0)
		test_skip("needs root: run it by `sudo ./check`");
	child = fork();
	expect(child >= 0);
	if (child == 0)
		compute();
	snprintf(pid, sizeof(pid), "%d", child);
	job_check(&(struct job){.plugin = "andiron-ebpf.so",
				.component = "pyroscope.ebpf",
				.args = every_second,
				.extension = offer,
				.give = give_child,
				.is_done = sent_samples});
	kill(child, SIGKILL);
	expect_eq(waitpid(child, NULL, 0), child);
	expect(objects.last_id > ANDIRON_OBJECT_KERNEL);
	for (size_t i = 0; i < ANDIRON_MIN_OBJECTS; i++)
		expect_eq(objects.all[i].id, 0);
}
