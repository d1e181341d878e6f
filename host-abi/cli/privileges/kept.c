/* SPDX-License-Identifier: Apache-2.0 */
/* See kept.h. The question whether the kernel opens events to CAP_PERFMON is put to the kernel,
 * with all else switched off: some distributions' kernels ask for CAP_SYS_ADMIN where
 * perf_event_paranoid is 3 or more, and others of the same version do not. */
#include "cli/privileges/kept.h"

#include "cli/doctor/probe.h"
#include "proc/haste.h"
#include "proc/privileges.h"
#include "proc/syscall-filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* What CAP_SYS_ADMIN has included since before they were split off. */
#define PARTS_OF_ADMIN                                                                             \
	(PRIVILEGE(CAP_BPF) | PRIVILEGE(CAP_PERFMON) | PRIVILEGE(CAP_CHECKPOINT_RESTORE))

/* Who has one of them loads programs and looks at processes. */
#define SAMPLING (PARTS_OF_ADMIN | PRIVILEGE(CAP_SYS_ADMIN) | PRIVILEGE(CAP_SYS_PTRACE))

static uint64_t declared(const struct registered_component *registered)
{
	const char *const *name = registered->component->capabilities;
	uint64_t mask = 0;

	for (; name && *name; name++) {
		int number = privilege_number(*name);

		if (number >= 0)
			mask |= PRIVILEGE(number);
	}
	return mask;
}

/* Modules that are fetched later may bring each component that there is. */
static uint64_t wanted(const struct plan *plan)
{
	const struct registered_component *all = NULL;
	size_t n = plan->may_bring ? registry_components(plan->may_bring, &all) : 0;
	uint64_t mask = 0;

	for (size_t i = 0; i < n; i++)
		mask |= declared(&all[i]);
	vec_each (&plan->nodes, node)
		mask |= declared(node->registered);
	vec_each (&plan->templates, registered)
		mask |= declared(*registered);
	vec_each (&plan->waiting, node)
		mask |= node->registered ? declared(node->registered) : 0;
	return mask;
}

/* What is kept beside the declared ones, of those that are held. */
static uint64_t stand_ins(uint64_t mask, uint64_t held)
{
	struct probe_kernel kernel = probe_kernel();
	uint64_t more = 0;

	if (mask & ~held & PARTS_OF_ADMIN)
		more |= PRIVILEGE(CAP_SYS_ADMIN);
	if (mask & PRIVILEGE(CAP_BPF) && probe_kernel_below(&kernel, 5, 11))
		more |= PRIVILEGE(CAP_SYS_RESOURCE);
	return more & held;
}

/* Whether events open with CAP_SYS_ADMIN only. Leaves `mask` in use. */
static int needs_admin(uint64_t mask, uint64_t held, bool *ret)
{
	const uint64_t admin = PRIVILEGE(CAP_SYS_ADMIN);
	int r = privileges_use(mask), opened;

	*ret = false;
	if (r < 0 || !(mask & PRIVILEGE(CAP_PERFMON)) || mask & admin || !(held & admin))
		return r;
	opened = probe_perf_event();
	if (opened != -EACCES && opened != -EPERM)
		return 0;
	r = privileges_use(mask | admin);
	if (r == 0)
		*ret = probe_perf_event() == 0;
	return r < 0 ? r : privileges_use(mask);
}

/* In place of CAP_SYS_NICE, which is over every process of the machine. Whether the sampler's
 * threads may now go before others. */
static bool allow_lower_nice(void)
{
	int nice = getpriority(PRIO_PROCESS, 0);
	rlim_t value = (rlim_t)(20 - (nice - HASTE_GAIN_START));
	struct rlimit limit;

	if (getrlimit(RLIMIT_NICE, &limit) < 0)
		return false;
	if (limit.rlim_cur >= value)
		return true;
	limit.rlim_cur = value;
	if (limit.rlim_max < value)
		limit.rlim_max = value;
	return setrlimit(RLIMIT_NICE, &limit) == 0;
}

int kept_choose(struct kept *ret, const struct plan *plan, uint64_t also, struct error *err)
{
	struct kept k = {.held = privileges_held(), .mask = wanted(plan)};
	bool admin;
	int r;

	if (k.mask & k.held & PRIVILEGE(CAP_PERFMON) && !allow_lower_nice())
		also |= PRIVILEGE(CAP_SYS_NICE);
	k.mask = ((k.mask | also) & k.held) | stand_ins(k.mask, k.held);
	r = needs_admin(k.mask, k.held, &admin);
	if (r == 0 && admin) {
		k.mask |= PRIVILEGE(CAP_SYS_ADMIN);
		r = privileges_use(k.mask);
	}
	if (r < 0)
		return error_errno(err, r, "cannot do without the privileges that are not needed");
	*ret = k;
	return 0;
}

int kept_settle(struct kept *k, struct error *err)
{
	int r;

	if (k->mask & PRIVILEGE(CAP_SYSLOG)) {
		k->kernel_symbols = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
		if (k->kernel_symbols < 0)
			k->kernel_symbols = 0;
	}
	k->mask &= ~PRIVILEGE(CAP_SYSLOG);
	r = privileges_keep(k->mask);
	if (r < 0)
		return error_errno(err, r,
				   "not all privileges that are not needed could be given up, so "
				   "nothing is started (to be kept: %s)",
				   kept_names(k->mask).text);
	r = syscall_filter_install(k->mask & SAMPLING ? SYSCALLS_SAMPLING : SYSCALLS_PLAIN);
	if (r < 0)
		return error_errno(err, r,
				   "system calls that are not needed could not be given up "
				   "(seccomp), so nothing is started");
	return 0;
}

static int check_one(const struct kept *k, const struct registered_component *registered,
		     const char *id, struct error *err)
{
	uint64_t gone = registered ? declared(registered) & k->held & ~k->mask : 0;

	if (k->kernel_symbols)
		gone &= ~PRIVILEGE(CAP_SYSLOG);
	if (!gone || (k->mask & PRIVILEGE(CAP_SYS_ADMIN) && !(gone & ~PARTS_OF_ADMIN)))
		return 0;
	return error_set(err, -EPERM,
			 "%s needs %s, which was given up at start because nothing needed it then; "
			 "restart the agent",
			 id, kept_names(gone).text);
}

/* What waits, and what a foreach will make, will need it, too. */
int kept_check(const struct kept *k, const struct plan *plan, struct error *err)
{
	int r = 0;

	vec_each (&plan->nodes, node)
		r = r < 0 ? r : check_one(k, node->registered, node->id, err);
	vec_each (&plan->waiting, node)
		r = r < 0 ? r : check_one(k, node->registered, node->id, err);
	vec_each (&plan->templates, registered)
		r = r < 0 ? r
			  : check_one(k, *registered, (*registered)->component->name, err);
	return r;
}

struct kept_names kept_names(uint64_t mask)
{
	struct kept_names names = {"none"};
	size_t n = 0;

	for (int c = 0; c < 64; c++)
		if (mask & PRIVILEGE(c) && n < sizeof(names.text))
			n += (size_t)snprintf(names.text + n, sizeof(names.text) - n, "%s%s",
					      n ? ", " : "", privilege_name(c));
	return names;
}
