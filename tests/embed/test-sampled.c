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

static struct andiron *start(atomic_ullong *samples)
{
	char text[512], *why = NULL;
	struct andiron *a = agent_open();

	snprintf(text, sizeof(text),
		 "pyroscope.ebpf \"self\" {\n"
		 "  targets = [{\"__process_pid__\" = \"%d\", \"service_name\" = \"x\"}]\n"
		 "  targets_only = true\n"
		 "  sample_rate = 97\n"
		 "  forward_to = [embed.profiles.mine.receiver]\n}\n"
		 "embed.profiles \"mine\" {}\n",
		 (int)getpid());
	agent_ok(lib.on_profiles(a, "mine", ANDIRON_FORM_PPROF, take, samples, &why), why);
	lib.text_free(agent_load(a, text, 0));
	agent_ok(lib.start(a, &why), why);
	return a;
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
	expect_eq(setgroups(0, NULL), 0);
	expect_eq(setresgid(65534, 65534, 65534), 0);
	expect_eq(setresuid(65534, 65534, 65534), 0);
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
