/* SPDX-License-Identifier: Apache-2.0 */
/* The life of the process, seen from the host. Contract in isolated-private.h. */
#include "host/isolate/isolated-private.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "host/isolate/batch-memory.h"
#include "host/services/callbacks.h"
#include "host/services/sandboxed-worker.h"
#include "host/services/services.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Which one that was killed takes to end, unless it waits in the kernel. It is the loop that waits:
 * so not long. */
#define END_MS 100

/* Whether it has ended: then ret_how says how, and nothing is left of it. */
static bool take_leave(int *pidfd, char *ret_how, size_t n)
{
	siginfo_t info = {0};

	if (waitid((idtype_t)P_PIDFD, (id_t)*pidfd, &info, WEXITED | WNOHANG) == 0 && !info.si_pid)
		return false;
	close(take_fd(*pidfd));
	if (!info.si_pid) /* a program may reap the children of all its parts */
		snprintf(ret_how, n, "it ended");
	else if (info.si_code == CLD_EXITED)
		snprintf(ret_how, n, "it ended with %d", info.si_status);
	else
		snprintf(ret_how, n, "signal %d ended it", info.si_status);
	return true;
}

bool isolated_is_dying(struct isolated *p)
{
	char how[64];

	return p->dying >= 0 && !take_leave(&p->dying, how, sizeof(how));
}

int isolated_start(struct isolated *p)
{
	struct instance *i = p->instance;
	struct isolate_message m = {.type = ISOLATE_START,
				    .number = atomic_load(&i->host->log.level),
				    .text = str_of(i->name)};
	_cleanup_(closep) int arguments = -1;
	int r = isolated_is_dying(p) ? -EBUSY : memory_of_bytes(buf_str(&p->arguments), &arguments);

	p->started_ns = clock_mono();
	p->why[0] = 0;
	if (r == 0)
		r = isolated_process_start(i, &p->socket, &p->pidfd);
	if (r < 0)
		return r;
	p->n_starts++;
	p->due_ns = p->started_ns + i->host->options.isolate_call_ns;
	p->told = false;
	return isolate_put(p->socket, &m, arguments, false);
}

void isolated_close(struct isolated *p, char *ret_how, size_t n)
{
	struct pollfd ended = {.fd = p->pidfd, .events = POLLIN};

	if (p->watch)
		calls_watch_remove(p->instance, p->watch);
	p->watch = 0;
	if (p->socket < 0)
		return;
	close(take_fd(p->socket));
	syscall(SYS_pidfd_send_signal, p->pidfd, SIGKILL, NULL, 0);
	while (poll(&ended, 1, END_MS) < 0 && errno == EINTR)
		;
	if (take_leave(&p->pidfd, ret_how, n))
		return;
	snprintf(ret_how, n, "it was killed and has not ended yet");
	p->dying = take_fd(p->pidfd);
}

void isolated_reason(const struct isolated *p, int code, const char *how, char *ret, size_t n)
{
	if (p->why[0])
		snprintf(ret, n, "%s", p->why);
	else if (code == -EPIPE)
		snprintf(ret, n, "%s", how);
	else if (code == -ETIMEDOUT)
		snprintf(ret, n, "it did not come back from a call within %g s and was killed",
			 (double)p->instance->host->options.isolate_call_ns / NS_PER_SEC);
	else if (code == -EBADMSG)
		snprintf(ret, n, "it said what it may not and was killed");
	else if (code == -E2BIG)
		snprintf(ret, n, "more than 64 MiB of targets wait for it");
	else if (code == -ENOENT)
		snprintf(ret, n, "the plugin's file was replaced or is gone: reload");
	else if (code == -EBUSY)
		snprintf(ret, n, "the one before was killed and does not end: it waits in the "
				 "kernel, perhaps for a disk or a network file system");
	else
		snprintf(ret, n, "%s", strerror(-code));
}

static struct str word(int code)
{
	return code == -ETIMEDOUT ? STR("isolate_hung")
	       : code == -EBADMSG ? STR("isolate_lied")
				  : STR("isolate_died");
}

/* What is in the store of one that has ended: all that it was given or has found there, less what
 * it has settled for good, and what is given to the next again. */
uint64_t isolated_stored(const struct isolated *p)
{
	const struct isolate_counts *c = &p->counts;
	uint64_t out = isolated_out(p, c);
	uint64_t in = p->given + (p->ready || c->carried > p->left ? c->carried : p->left);
	uint64_t held = p->forgotten;

	vec_each (&p->holdings, h)
		held += h->given ? h->left : 0;
	return in > out + held ? in - out - held : 0;
}

static void set_next(struct isolated *p)
{
	int64_t now = clock_mono();
	bool lived = now - p->started_ns > ISOLATE_LAST_NS;

	p->wait_ns = lived || !p->wait_ns ? ISOLATE_FIRST_NS : 2 * p->wait_ns;
	if (p->wait_ns > ISOLATE_LAST_NS)
		p->wait_ns = ISOLATE_LAST_NS;
	p->next_ns = now + p->wait_ns;
}

/* It is broken: kills it, drops what it loses, and sets the time of the next. */
static void fail(struct isolated *p, int code)
{
	struct instance *i = p->instance;
	struct ledger *l = &i->host->ledger;
	uint64_t lost = p->n_lost;
	char how[64] = "", why[480];

	isolated_close(p, how, sizeof(how));
	isolated_reason(p, code, how, why, sizeof(why));
	p->left = isolated_stored(p);
	holdings_lose(p, word(code));
	/* It has none of it any more: the next begins with what is left. */
	p->counts = (struct isolate_counts){0};
	p->given = p->passed = p->settled = 0;
	p->ready = false;
	host_services.full(i->id, false);
	ledger_level(l, &i->ledger_node, ANDIRON_LEDGER_SPOOLED, p->left);
	ledger_level(l, &i->ledger_node, ANDIRON_LEDGER_UNCERTAIN, 0);
	holdings_show(p);
	set_next(p);
	instance_healthf(i, ANDIRON_HEALTH_UNHEALTHY,
			 "its process has ended: %s; another is started in %d s%s", why,
			 (int)(p->wait_ns / NS_PER_SEC),
			 p->n_lost > lost ? ", and a batch is lost" : "");
	isolated_arm(p);
}

void isolated_go_on(struct isolated *p, int r)
{
	if (r == 0 && !p->ended)
		r = holdings_pump(p);
	if (r < 0)
		fail(p, r);
	else
		isolated_arm(p);
}

static void start_next(struct isolated *p)
{
	int r = isolated_start(p);

	if (r == 0)
		r = isolated_watch(p);
	isolated_go_on(p, r);
}

static void on_timer(void *self)
{
	struct isolated *p = self;
	int r = 0;

	p->timer = 0;
	if (p->stopping || p->ended)
		return;
	if (p->socket < 0) {
		if (clock_mono() >= p->next_ns)
			start_next(p);
		else
			isolated_arm(p);
		return;
	}
	/* Who was stopped himself finds that time is over and that the answer is there. */
	r = isolated_read(p);
	if (r == 0 && (p->in_hand || !p->ready) && clock_mono() >= p->due_ns)
		r = -ETIMEDOUT;
	isolated_go_on(p, r);
}

void isolated_arm(struct isolated *p)
{
	int64_t at = INT64_MAX;

	if (p->socket < 0)
		at = p->next_ns;
	else if (p->in_hand || !p->ready)
		at = p->due_ns;
	else if (p->targets.n) /* for which memory, or a descriptor, was short */
		at = clock_mono() + NS_PER_SEC;

	if (p->timer)
		calls_timer_cancel(p->instance, p->timer);
	p->timer = 0;
	if (p->stopping || p->ended || at == INT64_MAX)
		return;
	if (calls_timer_set(p->instance, at - clock_mono(), 0, on_timer, p, &p->timer) < 0)
		log_printf(&p->instance->host->log, ANDIRON_LOG_ERROR, p->instance->name,
			   "out of memory: its process is not watched over");
}

static void on_ready(void *self, int32_t fd, uint32_t events)
{
	struct isolated *p = self;

	if (p->socket == fd && !p->ended)
		isolated_go_on(p, isolated_read(p));
}

int isolated_watch(struct isolated *p)
{
	return calls_watch_add(p->instance, p->socket, ANDIRON_WATCH_IN, on_ready, p, &p->watch);
}
