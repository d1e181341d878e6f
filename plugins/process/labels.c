/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of a process. Contract in labels.h. */
#include "process/labels.h"

#include "base/check.h"

#include <errno.h>
#include <stdio.h>

unsigned int label_choice_needs(const struct label_choice *choice)
{
	unsigned int what = PROC_CGROUP; /* for the unit, always */

	what |= choice->exe ? PROC_EXE : 0;
	what |= choice->cwd ? PROC_CWD : 0;
	what |= choice->commandline ? PROC_CMDLINE : 0;
	what |= choice->uid || choice->username ? PROC_UID : 0;
	return what;
}

/* A copy in which each byte that is no UTF-8 became a question mark. */
static struct str clean(struct arena *arena, struct str s)
{
	struct str copy = arena_str(arena, s);
	char *p = (char *)(uintptr_t)copy.p; /* the arena's, so ours to write */

	if (!copy.p || str_utf8(copy))
		return copy;
	for (size_t i = 0; i < copy.n;) {
		size_t n = str_utf8_length(str_skip(copy, i));

		if (!n)
			p[i] = '?';
		i += n ? n : 1;
	}
	return copy;
}

static int add(struct process_labels *l, struct arena *arena, struct str name, struct str value)
{
	struct target_label label = {name, clean(arena, value)};

	check(l->n < PROCESS_LABELS_MAX);
	if (!label.value.p)
		return -ENOMEM;
	if (value.n)
		l->labels[l->n++] = label;
	return 0;
}

static int add_number(struct process_labels *l, struct arena *arena, struct str name,
		      uint32_t value)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%u", value);

	return add(l, arena, name, (struct str){text, (size_t)n});
}

/* One line of text per hierarchy, joined by bars as in Alloy. */
static int add_cgroup_path(struct process_labels *l, struct arena *arena, struct str text)
{
	struct str lines = str_trim(text);
	size_t before = l->n;
	int r = add(l, arena, STR("__meta_process_cgroup_path"), lines);

	if (!r && l->n > before) {
		char *p = (char *)(uintptr_t)l->labels[before].value.p; /* the arena's */

		for (size_t i = 0; i < lines.n; i++)
			if (p[i] == '\n')
				p[i] = '|';
	}
	return r;
}

static int add_user(struct process_labels *l, struct arena *arena, uint32_t uid,
		    const struct label_choice *choice, const struct users *users)
{
	int r = 0;

	if (uid == UINT32_MAX)
		return 0;
	if (choice->uid)
		r = add_number(l, arena, STR("__meta_process_uid"), uid);
	if (!r && choice->username)
		r = add(l, arena, STR("__meta_process_username"), users_name(users, uid));
	return r;
}

int process_labels(const struct proc_info *info, const struct label_choice *choice,
		   const struct users *users, struct arena *arena, struct process_labels *ret)
{
	int r;

	*ret = (struct process_labels){.n = 0};
	r = add_number(ret, arena, STR("__process_pid__"), info->pid);
	if (!r)
		r = add(ret, arena, STR("__meta_process_comm"), str_of(info->comm));
	if (!r)
		r = add(ret, arena, STR("__meta_process_exe"), info->exe);
	if (!r)
		r = add(ret, arena, STR("__meta_process_cwd"), info->cwd);
	if (!r)
		r = add(ret, arena, STR("__meta_process_commandline"), info->cmdline);
	if (!r)
		r = add(ret, arena, STR("__meta_process_systemd_unit"), systemd_unit(info->cgroup));
	if (!r && choice->container_id && container_id(info->cgroup, ret->container))
		r = add(ret, arena, STR("__container_id__"), str_of(ret->container));
	if (!r && choice->cgroup_path)
		r = add_cgroup_path(ret, arena, info->cgroup);
	return r ? r : add_user(ret, arena, info->uid, choice, users);
}
