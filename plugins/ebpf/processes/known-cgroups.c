/* SPDX-License-Identifier: Apache-2.0 */
/* See known-cgroups.h. */
#include "ebpf/processes/known-cgroups.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "proc/hierarchy.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define PLACE     "/sys/fs/cgroup"
#define PATH_ROOM 1024u

static bool is_version_2(int fd)
{
	struct statfs fs;

	return fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC;
}

void known_cgroups_init(struct known_cgroups *k)
{
	*k = (struct known_cgroups){.root = -1};
	if (proc_hierarchy_here() != CGROUP_HIERARCHY_V2)
		return;
	k->root = open(PLACE, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (!is_version_2(k->root))
		known_cgroups_fini(k);
}

void known_cgroups_fini(struct known_cgroups *k)
{
	closep(&k->root);
	k->root = -1;
}

static uint32_t place_of(uint64_t id)
{
	return (uint32_t)(hash_u64(id) % KNOWN_CGROUPS);
}

const char *known_cgroups_find(const struct known_cgroups *k, uint64_t id)
{
	const struct known_cgroup *c = &k->all[place_of(id)];

	return id != 0 && c->id == id && c->known ? c->container : NULL;
}

/* Its path below the root, "." for that itself, where version 2 is all that the text speaks of.
 * One that leads upwards is of a cgroup that we do not see. */
static bool path_below(struct str text, char ret[PATH_ROOM])
{
	struct str line = str_cut(&text, '\n');
	struct str path = str_skip(line, sizeof("0::/") - 1);

	if (text.n || !str_starts(line, STR("0::/")) || path.n >= PATH_ROOM ||
	    str_starts(path, STR("..")) || str_search(path, STR("/..")) < path.n)
		return false;
	if (path.n == 0)
		path = STR(".");
	memcpy(ret, path.p, path.n);
	ret[path.n] = '\0';
	return true;
}

static bool has_id(int root, const char *path, uint64_t id)
{
	struct stat st;

	return fstatat(root, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
	       st.st_ino == id;
}

void known_cgroups_learn(struct known_cgroups *k, uint64_t id, struct str text)
{
	struct known_cgroup *c = &k->all[place_of(id)];
	char path[PATH_ROOM];

	if (k->root < 0 || id == 0)
		return;
	if (c->id != id)
		*c = (struct known_cgroup){.id = id};
	if (c->known || c->n_tries == KNOWN_CGROUPS_TRIES)
		return;
	check(c->n_tries < KNOWN_CGROUPS_TRIES);
	c->n_tries++;
	if (!path_below(text, path) || !has_id(k->root, path, id))
		return;
	c->known = true;
	container_id(text, c->container);
}
