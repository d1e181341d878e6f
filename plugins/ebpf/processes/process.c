/* SPDX-License-Identifier: Apache-2.0 */
/* See process.h. */
#include "ebpf/processes/process.h"

#include "ebpf/processes/jit-source.h"
#include "bpfwire/unwind-tables.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#define MAPS_TEXT_MAX (8u << 20)

struct sought {
	const struct processes *table;
	const struct sampler_process_key *key;
};

struct sought_generation {
	const struct processes *table;
	uint64_t generation;
};

static uint64_t key_hash(const struct sampler_process_key *key)
{
	return hash_mix(key->start_ns, key->tgid);
}

static bool same_key(const void *context, uint32_t position)
{
	const struct sought *sought = context;
	const struct process *p = sought->table->all.p[position];

	return p->key.tgid == sought->key->tgid && p->key.start_ns == sought->key->start_ns;
}

int processes_init(struct processes *t, struct mapped_files *files)
{
	*t = (struct processes){.files = files};
	known_cgroups_init(&t->cgroups);
	t->proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return t->proc < 0 ? -errno : 0;
}

static void process_free(struct process *p)
{
	mapset_free(p->maps);
	free(p);
}

void processes_fini(struct processes *t)
{
	vec_each (&t->all, p)
		process_free(*p);
	vec_free(&t->all);
	index_free(&t->index);
	index_free(&t->generations);
	proc_info_free(&t->info);
	buf_free(&t->text);
	known_cgroups_fini(&t->cgroups);
	if (t->proc >= 0)
		close(t->proc);
	t->proc = -1;
}

struct process *processes_find(const struct processes *t, const struct sampler_process_key *key)
{
	struct sought sought = {t, key};
	uint32_t position = index_find(&t->index, key_hash(key), same_key, &sought);

	return position == INDEX_NONE ? NULL : t->all.p[position];
}

struct process *processes_get(struct processes *t, const struct sampler_process_key *key)
{
	struct process *p = processes_find(t, key);

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	check(t->all.n < INDEX_NONE);
	p->key = *key;
	p->stale = true;
	p->position = (uint32_t)t->all.n;
	if (!vec_push(&t->all, p)) {
		free(p);
		return NULL;
	}
	if (index_add(&t->index, key_hash(key), p->position) != 0) {
		t->all.n--;
		free(p);
		return NULL;
	}
	return p;
}

static uint64_t generation_hash(uint64_t generation)
{
	return hash_mix(generation, 0);
}

static bool same_generation(const void *context, uint32_t position)
{
	const struct sought_generation *sought = context;

	return sought->table->all.p[position]->maps->generation == sought->generation;
}

/* Who speaks for a generation, or NULL. */
static struct process *speaker(const struct processes *t, uint64_t generation)
{
	struct sought_generation sought = {t, generation};
	uint32_t position =
		index_find(&t->generations, generation_hash(generation), same_generation, &sought);

	return position == INDEX_NONE ? NULL : t->all.p[position];
}

static void fall_silent(struct processes *t, struct process *p)
{
	if (p->speaks)
		check(index_remove(&t->generations, generation_hash(p->maps->generation),
				   p->position));
	p->speaks = false;
}

/* Has it speak for its generation, unless somebody does who knows as much. */
static void speak(struct processes *t, struct process *p)
{
	struct process *other = p->maps ? speaker(t, p->maps->generation) : NULL;

	if (!p->maps || p->speaks || p->maps->generation == 0 ||
	    (other && (other->maps->whole || !p->maps->whole)))
		return;
	if (other)
		fall_silent(t, other);
	p->speaks = index_add(&t->generations, generation_hash(p->maps->generation), p->position) ==
		    0;
}

static void remove_process(struct processes *t, struct process *p)
{
	struct process *last = t->all.p[t->all.n - 1];

	check(p->position < t->all.n && t->all.p[p->position] == p);
	check(index_remove(&t->index, key_hash(&p->key), p->position));
	fall_silent(t, p);
	if (last != p) {
		index_move(&t->index, key_hash(&last->key), last->position, p->position);
		if (last->speaks)
			index_move(&t->generations, generation_hash(last->maps->generation),
				   last->position, p->position);
		last->position = p->position;
		t->all.p[p->position] = last;
	}
	t->all.n--;
	process_free(p);
}

struct process *processes_note(struct processes *t, const struct sampler_process *record)
{
	struct process *p = processes_get(t, &record->key);

	if (!p)
		return NULL;
	p->kthread = (record->flags & SAMPLER_PROCESS_KTHREAD) != 0;
	process_enter_cgroup(p, record->cgroup);
	p->root = record->root;
	p->generation = record->generation;
	p->stale = true;
	/* An exec changes both. */
	memcpy(p->comm, record->comm, SAMPLER_COMM_SIZE);
	return p;
}

void process_enter_cgroup(struct process *p, uint64_t cgroup)
{
	if (p->cgroup != cgroup)
		p->read = p->known = false;
	p->cgroup = cgroup;
}

/* A thread of the kernel says nothing of the others of its cgroup. */
static bool is_known(const struct processes *t, struct process *p)
{
	const char *container = known_cgroups_find(&t->cgroups, p->cgroup);

	if (!container || p->comm[0] == '\0' || p->kthread)
		return false;
	memcpy(p->container, container, sizeof(p->container));
	p->known = true;
	return true;
}

void process_identify(struct processes *t, struct process *p)
{
	char container[CONTAINER_ID_MAX] = "";

	if (p->read)
		return;
	p->read = true;
	if (is_known(t, p))
		return;
	if (proc_read(t->proc, p->key.tgid, PROC_CGROUP, &t->info) != 0 ||
	    !proc_same_start(t->info.start_ns, p->key.start_ns))
		return;
	p->kthread = t->info.kernel_thread;
	if (p->comm[0] == '\0')
		memcpy(p->comm, t->info.comm, sizeof(t->info.comm));
	if (!p->kthread)
		container_id(t->info.cgroup, container);
	/* One that exits keeps what it had. A thread of the kernel says nothing of the others. */
	if (!container[0] && t->info.exiting)
		return;
	memcpy(p->container, container, sizeof(container));
	p->known = container[0] || !p->kthread;
	if (!p->kthread)
		known_cgroups_learn(&t->cgroups, p->cgroup, t->info.cgroup);
}

/* A process whose mappings are being read. */
struct opener {
	struct jit_source_process process;
	struct str maps;
	int jit; /* its JIT source; -1: none */
	bool asked;
	char reopen[4352]; /* of `jit` */
};

/* All its mappings without a file have the same JIT source. */
static int open_jit_source(struct opener *o, char *reopen, size_t n)
{
	if (!o->asked)
		o->jit = jit_source_open(&o->process, o->maps, o->reopen, sizeof(o->reopen));
	o->asked = true;
	snprintf(reopen, n, "%s", o->jit < 0 ? "" : o->reopen);
	return o->jit < 0 ? -1 : fcntl(o->jit, F_DUPFD_CLOEXEC, 3);
}

static int open_mapped(void *context, const struct maps_line *line, char *reopen, size_t n)
{
	struct opener *o = context;

	if (line->inode == 0)
		return open_jit_source(o, reopen, n);
	if (str_starts(line->path, STR("/")) && line->path.n < n - 32)
		jit_source_put_path(&o->process, line->path, reopen, n);
	return jit_source_open_mapped(&o->process, line);
}

static bool has_own_root(int dir)
{
	struct stat a, b;

	return fstatat(dir, "root", &a, 0) == 0 && stat("/", &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* Whether it has code out of no file. */
static bool compiles(const struct mapset *set)
{
	vec_each (&set->list, m)
		if (!m->file && str_starts(m->name, STR("[anon")))
			return true;
	return false;
}

/* Makes `set` the process's newest, the former one behind it; frees it where both say the same. */
static void take_set(struct processes *t, struct process *p, struct mapset *set)
{
	const struct mapset *same = process_maps(p, set->generation);

	check(set != p->maps && !set->older);

	/* A child compiles for itself. */
	if (same && !same->inherited)
		mapset_keep_jit_sources(set, same);
	if (same && !set->exe.n)
		set->exe = arena_str(&set->arena, same->exe);
	p->stale = false;
	if (p->maps && mapset_equal(p->maps, set)) {
		mapset_keep_text(p->maps, set);
		mapset_free(set);
		return;
	}
	fall_silent(t, p);
	set->older = p->maps;
	p->maps = set;
	p->lacks_jit_source = compiles(set);
}

/* As the process is now; 0: it is another one, or gone, or has given up its memory. Where we may
 * not read the addresses (start_code is 1 then), the kernel side's word is taken. */
static uint64_t generation_now(struct processes *t, const struct sampler_process_key *key,
			       uint64_t word)
{
	struct proc_info *i = &t->info;

	if (proc_read(t->proc, key->tgid, 0, i) != 0 ||
	    !proc_same_start(i->start_ns, key->start_ns) || i->start_code == 0)
		return 0;
	return i->start_code > 1 ? unwind_generation(i->start_code, i->arg_start, i->start_stack)
				 : word;
}

/* The path of its program, in its own root; empty: it is not to be had. The path is read onto the
 * heap, since callbacks have 8 KiB of stack. */
static struct str read_exe(int dir, struct arena *arena)
{
	_cleanup_(freep) char *path = malloc(PATH_MAX);
	ssize_t n = path ? readlinkat(dir, "exe", path, PATH_MAX) : -1;
	struct str exe = {path, n > 0 && n < PATH_MAX ? (size_t)n : 0};

	if (str_ends(exe, STR(" (deleted)")))
		exe.n -= sizeof(" (deleted)") - 1;
	return exe.n && str_utf8(exe) ? arena_str(arena, exe) : STR_NULL;
}

/* Whether its JIT source has appeared since its mappings were read: a JVM writes a perf map on
 * demand. */
static bool has_jit_source(struct process *p, int dir)
{
	struct jit_source_process j = {dir, p->key.tgid, p->key.start_ns, false, &p->own_pid};

	return jit_source_has_map(&j);
}

/* Whether it has what `like` says. A map that a compiler writes beside its code is no mapping, and
 * changes no text. */
static bool is_as_before(const struct processes *t, struct process *p, int dir,
			 const struct mapset *like)
{
	return like->whole && like->asked != 0 && procmap_is(&t->procmap, dir, like->asked) &&
	       !(p->lacks_jit_source && has_jit_source(p, dir));
}

/* Reads the text of its executable mappings, and of which generation they are: an exec changes that
 * and all mappings. Before the text, what was reported is believed where `like` is of that; else it
 * is asked for. The directory is open by now, so that all is of one process. 0; -EALREADY: the same
 * as of `like` (or NULL), so it is the same program; -EAGAIN: not now; -ESRCH: it is gone; or what
 * procmap_read says. */
static int read_text(struct processes *t, struct process *p, int dir, const struct mapset *like,
		     uint64_t *ret_generation)
{
	bool known = like && like->generation == p->generation;
	uint64_t before = known ? p->generation : generation_now(t, &p->key, p->generation);
	int r;

	*ret_generation = before;
	if (before == 0)
		return -ESRCH;
	if (known && is_as_before(t, p, dir, like))
		return -EALREADY;
	buf_clear(&t->text);
	r = procmap_read(&t->procmap, &p->pace, dir, &t->text, MAPS_TEXT_MAX);
	if (r == 0 && known && like->whole && like->text == hash_str(buf_str(&t->text)) &&
	    !(p->lacks_jit_source && has_jit_source(p, dir)))
		return -EALREADY;
	*ret_generation = generation_now(t, &p->key, p->generation);
	if (*ret_generation == 0)
		return -ESRCH;
	return *ret_generation == before ? r : -EAGAIN;
}

const struct mapset *process_maps(const struct process *p, uint64_t generation)
{
	const struct mapset *set = p->maps;

	while (set && set->generation != generation)
		set = set->older;
	return set;
}

/* Its directory in /proc. */
static int open_process(const struct processes *t, const struct process *p)
{
	char name[16];

	snprintf(name, sizeof(name), "%u", p->key.tgid);
	return openat(t->proc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* The text as a set, or NULL. The files of lines that `like` has are not opened; NULL: all are. */
static struct mapset *parse_text(struct processes *t, struct process *p, int dir,
				 const struct mapset *like, uint64_t generation)
{
	struct opener o = {.jit = -1};
	struct mapset *set;

	o.process = (struct jit_source_process){dir, p->key.tgid, p->key.start_ns,
						has_own_root(dir), &p->own_pid};
	o.maps = buf_str(&t->text);
	set = mapset_parse(o.maps, t->files, open_mapped, &o, like, process_maps(p, generation));
	closep(&o.jit);
	if (!set)
		return NULL;
	if (set->list.n == 0) { /* it has given up its memory: keep what it had */
		mapset_free(set);
		return NULL;
	}
	if (!like)
		p->opened_ns = clock_mono();
	set->generation = generation;
	set->exe = like && like->exe.n ? arena_str(&set->arena, like->exe)
				       : read_exe(dir, &set->arena);
	return set;
}

/* False if they were not read now. `like`: what it had mapped a moment ago, of which only the news
 * is looked at; or NULL. */
static bool read_maps(struct processes *t, struct process *p, const struct mapset *like)
{
	_cleanup_(closep) int dir = -1;
	struct mapset *set;
	uint64_t generation;
	int r;

	if (!p->stale || p->kthread)
		return false;
	p->stale = false;
	dir = open_process(t, p);
	p->missing = dir < 0 && errno == ENOENT;
	if (dir < 0)
		return false;
	r = read_text(t, p, dir, like, &generation);
	p->stale = r == -EAGAIN;
	if (r == 0 || r == -EALREADY)
		p->mapped_ns = clock_mono();
	if (r == -EALREADY || r == -EAGAIN || r == -ESRCH || t->text.n == 0)
		return false;
	if (like && like->generation != generation)
		like = NULL;
	set = parse_text(t, p, dir, like, generation);
	if (!set)
		return false;
	set->asked = r == 0 ? t->procmap.asked : 0;
	take_set(t, p, set);
	return true;
}

static bool has_whole_maps(const struct process *p, uint64_t generation)
{
	const struct mapset *own = process_maps(p, generation);

	return own && own->whole;
}

/* Where nothing is known of what it had mapped by that generation, or it was gone before all its
 * files were opened, but more of another process with the same generation, its parent or another
 * child of that: the same. */
static void inherit_maps(struct processes *t, struct process *p, uint64_t generation)
{
	const struct mapset *own = process_maps(p, generation), *like;
	const struct process *other;
	struct mapset *set;

	if (generation == 0 || has_whole_maps(p, generation))
		return;
	other = speaker(t, generation);
	if (!other || other == p)
		return;
	like = other->maps;
	/* While it is there, it knows better than others what it has mapped since. */
	if (own && (!like->whole || generation_now(t, &p->key, generation) == generation))
		return;
	set = mapset_copy(like);
	if (set)
		set->inherited = true;
	if (set && p->maps && p->maps->generation != generation && generation == p->generation) {
		/* It was sampled, and is another program since. */
		set->older = p->maps->older;
		p->maps->older = set;
	} else if (set) {
		take_set(t, p, set);
	}
}

static void inherit_all(struct processes *t, struct process *p)
{
	if (p->kthread)
		return;
	inherit_maps(t, p, p->generation);
	if (p->maps && p->maps->generation != p->generation)
		inherit_maps(t, p, p->maps->generation);
	speak(t, p);
}

void process_map(struct processes *t, struct process *p)
{
	read_maps(t, p, NULL);
	inherit_all(t, p);
}

bool process_look(struct processes *t, struct process *p)
{
	p->stale = true;
	read_maps(t, p, p->maps);
	inherit_all(t, p);
	return !p->missing;
}

struct process *processes_parent(struct processes *t, const struct process *p,
				 const struct sampler_process_key *key)
{
	if (p->kthread || p->generation == 0 || has_whole_maps(p, p->generation) ||
	    generation_now(t, key, 0) != p->generation)
		return NULL;
	return processes_get(t, key);
}

void process_take_maps(struct processes *t, struct process *p, const struct sampler_mapped *mapped)
{
	struct mapset *set = mapset_take(mapped, t->files);

	if (!set)
		return;
	set->generation = mapped->generation;
	p->stale = true;
	if (!set->whole && read_maps(t, p, NULL) && p->maps->generation == mapped->generation) {
		mapset_free(set);
	} else {
		take_set(t, p, set);
		/* By now it may be another program, or one whose files can be opened; and what
		 * tells of code that a process compiles is opened by us alone. */
		p->stale = !p->maps->whole || p->lacks_jit_source;
	}
	inherit_all(t, p);
}

/* Whether a process of its pid is there; if it is another by now, the next report tells. */
static bool is_there(const struct processes *t, const struct process *p)
{
	char name[16];

	snprintf(name, sizeof(name), "%u", p->key.tgid);
	return faccessat(t->proc, name, F_OK, 0) == 0;
}

void processes_age(struct processes *t, uint32_t keep,
		   void (*gone)(void *context, const struct process *p), void *context)
{
	for (size_t i = t->all.n; i-- > 0;) {
		struct process *p = t->all.p[i];

		check(p->position == i);
		p->idle_intervals++;
		if (p->idle_intervals > keep || (p->idle_intervals > 1 && !is_there(t, p))) {
			gone(context, p);
			remove_process(t, p);
			continue;
		}
		if (p->lacks_jit_source && p->idle_intervals == 1 && !p->stale) {
			_cleanup_(closep) int dir = open_process(t, p);

			p->stale = dir >= 0 && has_jit_source(p, dir);
		}
		if (p->maps && p->maps->older) {
			if (p->stored != p->maps)
				p->stored = NULL;
			mapset_free(p->maps->older);
			p->maps->older = NULL;
		}
	}
}
