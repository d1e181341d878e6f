/* SPDX-License-Identifier: Apache-2.0 */
/* Known cgroups, and processes of them: a folder is the hierarchy, its folders are cgroups. */
#include "ebpf/processes/process.h"

#include "base/check.h"
#include "testing/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

struct hierarchy {
	char path[32];
	struct known_cgroups known;
	uint64_t container, unit, root; /* ids */
};

static uint64_t make(const struct hierarchy *h, const char *name)
{
	struct stat st;

	check(mkdirat(h->known.root, name, 0755) == 0);
	check(fstatat(h->known.root, name, &st, 0) == 0);
	return st.st_ino;
}

static struct hierarchy *hierarchy_new(void)
{
	struct hierarchy *h = calloc(1, sizeof(*h));
	struct stat st;

	check(h);
	snprintf(h->path, sizeof(h->path), "/tmp/cgroups-XXXXXX");
	check(mkdtemp(h->path));
	h->known.root = open(h->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	check(h->known.root >= 0 && fstat(h->known.root, &st) == 0);
	h->root = st.st_ino;
	make(h, "a.slice");
	h->container = make(h, "a.slice/docker-" ID ".scope");
	h->unit = make(h, "b.service");
	return h;
}

static void hierarchy_free(struct hierarchy *h)
{
	unlinkat(h->known.root, "a.slice/docker-" ID ".scope", AT_REMOVEDIR);
	unlinkat(h->known.root, "a.slice", AT_REMOVEDIR);
	unlinkat(h->known.root, "b.service", AT_REMOVEDIR);
	rmdir(h->path);
	known_cgroups_fini(&h->known);
	free(h);
}

static void learn(struct hierarchy *h, uint64_t id, const char *text)
{
	known_cgroups_learn(&h->known, id, str_of(text));
}

/* What the hierarchy confirms is known from then on: a container, or that there is none. */
TEST(what_has_the_id_is_learnt)
{
	struct hierarchy *h = hierarchy_new();
	const char *found;

	expect(!known_cgroups_find(&h->known, h->container));
	learn(h, h->container, "0::/a.slice/docker-" ID ".scope\n");
	found = known_cgroups_find(&h->known, h->container);
	expect(found && strcmp(found, ID) == 0);
	learn(h, h->unit, "0::/b.service\n");
	found = known_cgroups_find(&h->known, h->unit);
	expect(found && *found == '\0');
	learn(h, h->root, "0::/\n");
	found = known_cgroups_find(&h->known, h->root);
	expect(found && *found == '\0');
	hierarchy_free(h);
}

/* A process that was in one cgroup when it was sampled, and is in another when it is asked, says
 * nothing of the first: all others of that would have a wrong name. */
TEST(who_has_moved_teaches_nothing)
{
	struct hierarchy *h = hierarchy_new();
	const char *found;

	learn(h, h->unit, "0::/a.slice/docker-" ID ".scope\n");
	expect(!known_cgroups_find(&h->known, h->unit));
	expect(!known_cgroups_find(&h->known, h->container));
	learn(h, h->unit, "0::/b.service\n");
	found = known_cgroups_find(&h->known, h->unit);
	expect(found && *found == '\0');
	hierarchy_free(h);
}

/* Hierarchies of version 1, cgroups that are gone or above what we see, and any other bytes. */
TEST(other_texts_teach_nothing)
{
	static const char *const texts[] = {
		"",
		"\n",
		"0::",
		"0::/c.service\n",
		"0::/b.service (deleted)\n",
		"0::/../b.service\n",
		"0::/a.slice/../b.service\n",
		"1:name=systemd:/b.service\n0::/b.service\n",
		"0::/b.service\n1:name=systemd:/b.service\n",
		"4:memory:/b.service\n",
	};
	struct hierarchy *h = hierarchy_new();
	char path[5000];

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		memset(h->known.all, 0, sizeof(h->known.all));
		learn(h, h->unit, texts[i]);
		expect(!known_cgroups_find(&h->known, h->unit));
	}
	memset(path, '/', sizeof(path));
	memcpy(path, "0::/", 4);
	memcpy(path + sizeof(path) - sizeof("b.service"), "b.service", sizeof("b.service"));
	learn(h, h->unit, path);
	expect(!known_cgroups_find(&h->known, h->unit));
	hierarchy_free(h);
}

/* Where nothing can be learnt, that costs a few looks and not one for each process. */
TEST(tries_are_few)
{
	struct hierarchy *h = hierarchy_new();

	for (uint32_t i = 0; i < KNOWN_CGROUPS_TRIES; i++)
		learn(h, h->unit, "0::/../b.service\n");
	learn(h, h->unit, "0::/b.service\n");
	expect(!known_cgroups_find(&h->known, h->unit));
	known_cgroups_fini(&h->known);
	learn(h, h->container, "0::/a.slice/docker-" ID ".scope\n");
	expect(!known_cgroups_find(&h->known, h->container));
	h->known.root = open(h->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	hierarchy_free(h);
}

/* A process of a known cgroup is identified though it is gone; not a thread of the kernel, and not
 * one whose name nobody has told. */
TEST(who_is_gone_has_the_container_of_its_cgroup)
{
	struct hierarchy *h = hierarchy_new();
	struct sampler_process record = {.key = {.tgid = UINT32_MAX}, .cgroup = h->container};
	struct processes t;
	struct process *p;

	expect_eq(processes_init(&t, NULL), 0);
	learn(h, h->container, "0::/a.slice/docker-" ID ".scope\n");
	memcpy(t.cgroups.all, h->known.all, sizeof(t.cgroups.all));
	p = processes_note(&t, &record);
	check(p);
	process_identify(&t, p);
	expect(p->read && !p->known);
	record.key.start_ns++;
	memcpy(record.comm, "a", 2);
	p = processes_note(&t, &record);
	check(p);
	process_identify(&t, p);
	expect(p->known && strcmp(p->container, ID) == 0);
	process_enter_cgroup(p, h->unit);
	process_identify(&t, p);
	expect(p->read && !p->known);
	record.key.start_ns++;
	record.flags = SAMPLER_PROCESS_KTHREAD;
	p = processes_note(&t, &record);
	check(p);
	process_identify(&t, p);
	expect(p->read && !p->known);
	processes_fini(&t);
	hierarchy_free(h);
}
