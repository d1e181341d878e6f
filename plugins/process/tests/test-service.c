/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of the service where the kernel gives no events. */
#include "testing/test.h"
#include "process/service.h"
#include "process/tracer.h"
#include "process/tests/test-loop.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned int n_told, n_lost;

static void count(void *arg, const struct andiron_process_event *events, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		n_told++;
		n_lost += events[i].kind == ANDIRON_PROCESS_LOST;
	}
}

static bool told(void *context)
{
	return n_told > 0;
}

static bool never(void *context)
{
	return false;
}

/* A test is a process of its own, so what it gives up is its own. */
static struct service *unprivileged(struct loop *l)
{
	const struct andiron_host *host = loop_init(l);
	struct service *s = service_new(host, 1);

	expect(s != NULL);
	if (geteuid() == 0)
		expect(setgid(65534) == 0 && setuid(65534) == 0);
	return s;
}

/* Without the privilege the service stands, says why and what to do, tells those who subscribed
 * before that they know nothing, and refuses the rest. */
TEST(without_privilege)
{
	uint64_t id = 0, other = 7;
	struct loop l;
	struct service *s = unprivileged(&l);

	expect_eq(service_table.subscribe(s, 2, count, NULL, &id), 0);
	expect_eq(service_start(s, NULL), 0);
	expect_eq(l.health, ANDIRON_HEALTH_UNHEALTHY);
	expect(strstr(l.health_text, "CAP_BPF") != NULL);
	expect(loop_run(told, NULL, 60000));
	expect_eq(n_told, 1);
	expect_eq(n_lost, 1);
	expect_eq(service_table.subscribe(s, 3, count, NULL, &other), -EPERM);
	expect_eq(other, 7);
	service_table.unsubscribe(s, id);
	service_stop(s);
	loop_run(never, NULL, 10);
	service_free(s);
	loop_fini(&l);
}

/* An end before the start, or before the first turn, leaves nothing behind, whatever is on its way.
 */
TEST(unsubscribed_before_the_turn)
{
	uint64_t id = 0;
	struct loop l;
	struct service *s = unprivileged(&l);

	expect_eq(service_start(s, NULL), 0);
	service_stop(s);
	service_free(s);
	loop_fini(&l);
	s = service_new(loop_init(&l), 1);
	expect(s != NULL);
	expect_eq(service_table.subscribe(s, 2, count, NULL, &id), 0);
	service_table.unsubscribe(s, id);
	service_table.unsubscribe(s, id + 1);
	loop_run(never, NULL, 10);
	expect_eq(n_told, 0);
	service_stop(s);
	service_free(s);
	loop_fini(&l);
}

static int agents_log(enum libbpf_print_level level, const char *format, va_list args)
{
	return 0;
}

/* libbpf's log is one for a process: that of an agent that uses libbpf itself stays its own. Where
 * nobody has set one libbpf must not write to the agent's standard error. */
TEST(the_agents_log_of_libbpf_is_left_alone)
{
	struct tracer *tracer = NULL;

	if (geteuid() == 0)
		expect(setgid(65534) == 0 && setuid(65534) == 0);
	expect(tracer_open(1 << 20, &tracer, NULL) < 0);
	expect(libbpf_set_print(agents_log) == NULL);
	expect(tracer_open(1 << 20, &tracer, NULL) < 0);
	expect(libbpf_set_print(NULL) == agents_log);
	expect(tracer_open(1 << 20, &tracer, NULL) < 0);
	expect(libbpf_set_print(NULL) == NULL);
}
