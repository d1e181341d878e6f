/* SPDX-License-Identifier: Apache-2.0 */
/* What closing waits for. */
#include "agent.h"

#include "base/clock.h"

#include <sched.h>
#include <unistd.h>

static const char text[] = "test.producer \"p\" {\n"
			   "  forward_to = [embed.profiles.a.receiver]\n}\n"
			   "embed.profiles \"a\" {}\n";

static struct andiron *opened;
static atomic_int n_begun;
static atomic_bool closed, came_back;

/* Longer than a run waits for what does not come back; asks meanwhile, as a callback may. */
static int32_t take_long(void *context, const struct andiron_profile *profile)
{
	int64_t end = clock_mono() + 5 * NS_PER_SEC;

	n_begun++;
	while (!closed && clock_mono() < end) {
		char *ledger = NULL;

		expect_eq(lib.read(opened, ANDIRON_READ_LEDGER, &ledger), 0);
		lib.text_free(ledger);
	}
	came_back = !closed;
	return 0;
}

/* What a callback uses may be freed once it is closed: none runs then, and none begins. */
_Noreturn TEST(closing_waits_for_a_callback_that_was_left_behind)
{
	char *why = NULL;

#ifdef __SANITIZE_THREAD__
	test_skip("a thread is left behind on purpose, which TSan reports; run without it");
#endif
	opened = agent_open();
	agent_batches = 3;
	agent_ok(lib.on_profiles(opened, "a", ANDIRON_FORM_BATCH, take_long, NULL, &why), why);
	lib.text_free(agent_load(opened, text, 0));
	agent_ok(lib.start(opened, &why), why);
	while (n_begun == 0)
		sched_yield();
	expect_eq(lib.close(opened), 0);
	closed = true;
	expect(came_back);
	expect_eq(n_begun, 1);
	_exit(0); /* its descriptors and memory stay, on purpose */
}
