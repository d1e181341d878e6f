/* SPDX-License-Identifier: Apache-2.0 */
/* libandiron with the sampler: it puts back what that takes, too. */
#include "agent.h"

#include <grp.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 5

/* A sanitizer's allocator maps as it likes. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MORE_MAPPINGS 200
#else
#define MORE_MAPPINGS 0
#endif

static int32_t take(void *context, const struct andiron_profile *profile)
{
	atomic_ullong *samples = context;

	*samples += profile->samples;
	return 0;
}

static void load(struct andiron *a, int rate_hz)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "pyroscope.ebpf \"self\" {\n"
		 "  targets = [{\"__process_pid__\" = \"%d\", \"service_name\" = \"x\"}]\n"
		 "  targets_only = true\n"
		 "  sample_rate = %d\n"
		 "  forward_to = [embed.profiles.mine.receiver]\n}\n"
		 "embed.profiles \"mine\" {}\n",
		 (int)getpid(), rate_hz);
	lib.text_free(agent_load(a, text, 0));
}

static struct andiron *start(atomic_ullong *samples)
{
	struct andiron *a = agent_open();
	char *why = NULL;

	agent_ok(lib.on_profiles(a, "mine", ANDIRON_FORM_PPROF, take, samples, &why), why);
	load(a, 97);
	agent_ok(lib.start(a, &why), why);
	return a;
}

static void drop_privileges(void)
{
	expect_eq(setgroups(0, NULL), 0);
	expect_eq(setresgid(65534, 65534, 65534), 0);
	expect_eq(setresuid(65534, 65534, 65534), 0);
}

static void work(void)
{
	unsigned int waste = 0;

	for (clock_t end = clock() + CLOCKS_PER_SEC / 2; clock() < end; waste++)
		;
}

static void sample(atomic_ullong *samples)
{
	struct andiron *a = start(samples);
	char *why = NULL;

	work();
	agent_ok(lib.stop(a, INT64_C(10000000000), &why), why);
	expect_eq(lib.close(a), 0);
}

/* Rings, programs, maps, threads and the descriptors of files: all of it goes. */
TEST(closing_a_sampler_puts_all_back)
{
	struct process before, after;
	atomic_ullong samples = 0;

	if (geteuid() != 0)
		test_skip("needs root: run it by `sudo ./check`");
	sample(&samples);
	sample(&samples);
	process_look(&before);
	for (int i = 0; i < ROUNDS; i++)
		sample(&samples);
	process_look(&after);
	printf("# %llu samples; %d mappings, %d before\n", samples, after.mappings,
	       before.mappings);
	process_expect_same(&before, &after);
	expect(after.mappings < before.mappings + ROUNDS + MORE_MAPPINGS);
	expect(samples > 0);
}

/* The C library has each thread give up its user, by a signal that nobody blocks. What is open
 * stays open, so samples go on, and are closed like any other. */
TEST(a_process_may_drop_its_privileges_meanwhile)
{
	struct process before, after;
	atomic_ullong samples = 0, early;
	char *ledger = NULL, *why = NULL;
	struct andiron *a;

	if (geteuid() != 0)
		test_skip("needs root: run it by `sudo ./check`");
	sample(&samples);
	process_look(&before);
	a = start(&samples);
	drop_privileges();
	early = samples;
	work();
	agent_ok(lib.stop(a, INT64_C(10000000000), &why), why);
	agent_ok(lib.read(a, ANDIRON_READ_LEDGER, &ledger), ledger);
	printf("# %llu samples; %s\n", samples - early, ledger);
	expect(samples - early > 20);
	lib.text_free(ledger);
	expect_eq(lib.close(a), 0);
	process_look(&after);
	process_expect_same(&before, &after);
	prctl(PR_SET_DUMPABLE, 1); /* the sanitizer of leaks traces its process */
}

static void expect_health(struct andiron *a, const char *words)
{
	bool is = false;

	for (int i = 0; i < 20 && !is; i++) {
		char *health = NULL;

		agent_ok(lib.read(a, ANDIRON_READ_HEALTH, &health), health);
		is = strstr(health, words) != NULL;
		lib.text_free(health);
		work();
	}
	expect(is);
}

/* A change that needs a privilege is told in the health, and what ran goes on. The former options
 * are had by loading them again. */
TEST(a_change_that_needs_dropped_privileges_changes_nothing)
{
	atomic_ullong samples = 0;
	struct andiron *a;
	char *why = NULL;

	if (geteuid() != 0)
		test_skip("needs root: run it by `sudo ./check`");
	a = start(&samples);
	drop_privileges();
	load(a, 197);
	expect_health(a, "Sampling goes on with those before (sample_rate 97)");
	load(a, 97);
	expect_health(a, "at 97 Hz");
	samples = 0;
	for (int i = 0; i < 4; i++)
		work();
	agent_ok(lib.stop(a, INT64_C(10000000000), &why), why);
	printf("# %llu samples\n", samples);
	expect(samples > 150);
	expect_eq(lib.close(a), 0);
	prctl(PR_SET_DUMPABLE, 1);
}
