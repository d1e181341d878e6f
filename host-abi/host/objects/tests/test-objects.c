/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of the objects service. */
#include "base/cleanup.h"
#include "base/file.h"
#include "testing/test.h"
#include "host/objects/identity.h"
#include "host/objects/objects.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define N_FILES 600

static struct andiron_str text(const char *s)
{
	return (struct andiron_str){s, strlen(s)};
}

static struct objects *make(void)
{
	struct objects *o = NULL;

	expect_eq(objects_new(&o, NULL), 0);
	return o;
}

static char *folder(char *path)
{
	snprintf(path, 32, "/tmp/test-objects-XXXXXX");
	expect(mkdtemp(path));
	return path;
}

static void write_file(const char *path, const char *content)
{
	expect_eq(file_replace(path, content, strlen(content), NULL), 0);
}

static uint64_t intern(struct objects *o, const char *path)
{
	struct andiron_str name = text(path);
	uint64_t id = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	expect(fd >= 0);
	expect_eq(objects_service.intern(o, fd, &name, &name, &id), 0);
	close(fd);
	return id;
}

static void expect_content(struct objects *o, uint64_t id, const char *content)
{
	char got[64] = "";
	int32_t fd = -1;

	expect_eq(objects_service.open(o, id, ANDIRON_OPEN_FILE, &fd), 0);
	expect_eq(pread(fd, got, sizeof(got) - 1, 0), strlen(content));
	expect_str(str_of(got), content);
	expect(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
}

/* One file is one object under whatever name, until its last reference goes. */
TEST(a_file_is_interned_once)
{
	const struct andiron_objects *t = &objects_service;
	struct objects *o = make();
	struct andiron_object_info info = {.size = sizeof(info)};
	char dir[32], path[64], link_path[64];
	uint64_t a, b, c;

	snprintf(path, sizeof(path), "%s/a", folder(dir));
	snprintf(link_path, sizeof(link_path), "%s/b", dir);
	write_file(path, "one");
	expect_eq(symlink(path, link_path), 0);
	a = intern(o, path);
	b = intern(o, link_path);
	expect_eq(a, b);
	expect(a != ANDIRON_OBJECT_KERNEL && a != 0);
	expect_eq(t->info(o, a, &info), 0);
	expect_str(((struct str){info.path.ptr, info.path.len}), path);
	expect_eq(info.file_size, 3);
	expect_eq(t->find(o, &info.key, &c), 0);
	expect_eq(c, a);

	t->release(o, a);
	t->release(o, a);
	expect_content(o, a, "one");
	t->release(o, a);
	expect_eq(t->info(o, a, &info), -ENOENT);
	expect_eq(t->find(o, &info.key, &c), -ENOENT);
	expect_eq(objects_count(o).n_open, 0);

	/* Its id is not given to the next. */
	expect(intern(o, path) != a);
	t->release(o, a);
	expect_eq(objects_count(o).n_objects, 2);
	unlink(path);
	unlink(link_path);
	rmdir(dir);
	objects_free(o);
}

/* A file that was replaced under its path is another object, and the old one is readable as long as
 * its descriptor is open. */
TEST(a_replaced_file_is_another_object)
{
	struct objects *o = make();
	char dir[32], path[64];
	uint64_t a, b;

	snprintf(path, sizeof(path), "%s/a", folder(dir));
	write_file(path, "one");
	a = intern(o, path);
	write_file(path, "two");
	b = intern(o, path);
	expect(a != b);
	expect_content(o, a, "one");
	expect_content(o, b, "two");
	unlink(path);
	rmdir(dir);
	objects_free(o);
}

/* The ceiling on descriptors holds; what was closed is opened again, and is not believed if it is
 * another file by now. */
TEST(the_least_recently_used_closes)
{
	const struct andiron_objects *t = &objects_service;
	struct objects *o = make();
	char dir[32], first[64], path[64];
	uint64_t ids[N_FILES];
	int32_t fd;

	snprintf(first, sizeof(first), "%s/0", folder(dir));
	for (int i = 0; i < N_FILES; i++) {
		snprintf(path, sizeof(path), "%s/%d", dir, i);
		write_file(path, path);
		ids[i] = intern(o, path);
		expect_content(o, ids[0], first);
	}
	expect_eq(objects_count(o).n_open, OBJECTS_MAX_OPEN);
	expect_eq(objects_count(o).n_objects, N_FILES + 1);

	/* The first was used all the time: its descriptor outlives its name. */
	unlink(first);
	expect_content(o, ids[0], first);
	/* Of those that closed, one is still there, one gone, one replaced. */
	snprintf(path, sizeof(path), "%s/3", dir);
	expect_content(o, ids[3], path);
	snprintf(path, sizeof(path), "%s/1", dir);
	unlink(path);
	expect_eq(t->open(o, ids[1], ANDIRON_OPEN_FILE, &fd), -ENOENT);
	snprintf(path, sizeof(path), "%s/2", dir);
	write_file(path, "another");
	expect_eq(t->open(o, ids[2], ANDIRON_OPEN_FILE, &fd), -ESTALE);
	expect_eq(objects_count(o).n_open, OBJECTS_MAX_OPEN);

	for (int i = 0; i < N_FILES; i++) {
		t->release(o, ids[i]);
		snprintf(path, sizeof(path), "%s/%d", dir, i);
		unlink(path);
	}
	expect_eq(objects_count(o).n_open, 0);
	rmdir(dir);
	objects_free(o);
}

/* With no descriptor to be had the service gives its own away first. */
TEST(a_full_table_of_descriptors_is_survived)
{
	struct objects *o = make();
	struct rlimit limit;
	char dir[32], path[64];

	folder(dir);
	expect_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = 32;
	expect_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (int i = 0; i < 64; i++) {
		snprintf(path, sizeof(path), "%s/%d", dir, i);
		write_file(path, path);
		intern(o, path);
		unlink(path);
		if (objects_count(o).n_open > 20)
			limit.rlim_cur = 28, setrlimit(RLIMIT_NOFILE, &limit);
	}
	expect_eq(objects_count(o).n_objects, 65);
	rmdir(dir);
	objects_free(o);
}

/* The first to name an object wins; strings that were handed out stay. */
TEST(ids_are_written_once)
{
	const struct andiron_objects *t = &objects_service;
	struct andiron_str empty = text(""), first = text("0123abcd"), second = text("ffff");
	struct andiron_object_info info = {.size = sizeof(info)};
	struct objects *o = make();
	const char *told;

	expect_eq(t->identify(o, ANDIRON_OBJECT_KERNEL, &first, &empty, NULL), 0);
	expect_eq(t->info(o, ANDIRON_OBJECT_KERNEL, &info), 0);
	told = info.gnu_build_id.ptr;
	expect_eq(t->identify(o, ANDIRON_OBJECT_KERNEL, &second, &second, NULL), 0);
	expect_eq(t->info(o, ANDIRON_OBJECT_KERNEL, &info), 0);
	expect(info.gnu_build_id.ptr == told);
	expect_str(((struct str){told, info.gnu_build_id.len}), "0123abcd");
	expect_str(((struct str){info.go_build_id.ptr, info.go_build_id.len}), "ffff");
	expect_eq(info.file_id.len, 0);
	expect_eq(t->identify(o, 999, &first, NULL, NULL), -ENOENT);
	objects_free(o);
}

/* The kernel is always there, its reference cannot be given away. */
TEST(the_kernel_is_an_object)
{
	const struct andiron_objects *t = &objects_service;
	struct objects *o = make();
	char line[64];
	int32_t fd;

	for (int i = 0; i < 3; i++)
		t->release(o, ANDIRON_OBJECT_KERNEL);
	expect_eq(t->open(o, ANDIRON_OBJECT_KERNEL, ANDIRON_OPEN_KALLSYMS, &fd), 0);
	expect(read(fd, line, sizeof(line)) > 0);
	close(fd);
	expect_eq(t->open(o, ANDIRON_OBJECT_KERNEL, ANDIRON_OPEN_FILE, &fd), -ENOENT);
	expect_eq(t->open(o, ANDIRON_OBJECT_KERNEL, 99, &fd), -ENOENT);
	objects_free(o);
}

/* A build id comes from a stranger's file and must not lead out of the folder of debug files. */
TEST(a_build_id_is_no_path)
{
	static const char *const ids[] = {"ab/../../../../../etc/passwd", "../x", "abc", "ABCDEF",
					  "abcdefabcdefabcdefabcdefabcdefabcdefabcd"};
	const struct andiron_objects *t = &objects_service;
	int32_t fd;

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		struct objects *o = make();
		struct andiron_str id = text(ids[i]);

		expect_eq(t->identify(o, ANDIRON_OBJECT_KERNEL, &id, NULL, NULL), 0);
		expect_eq(t->open(o, ANDIRON_OBJECT_KERNEL, ANDIRON_OPEN_DEBUG, &fd), -ENOENT);
		objects_free(o);
	}
}

struct race {
	struct objects *objects;
	const char *dir;
};

static void *race(void *arg)
{
	const struct andiron_objects *t = &objects_service;
	const struct race *r = arg;
	char path[64];
	int32_t fd;

	for (int i = 0; i < 4000; i++) {
		uint64_t id;

		snprintf(path, sizeof(path), "%s/%d", r->dir, i % 7);
		id = intern(r->objects, path);
		t->retain(r->objects, id);
		t->release(r->objects, id);
		expect_eq(t->open(r->objects, id, ANDIRON_OPEN_FILE, &fd), 0);
		close(fd);
		t->release(r->objects, id);
	}
	return NULL;
}

/* Every function is for any thread. */
TEST(threads_share_it)
{
	struct objects *o = make();
	pthread_t threads[4];
	char dir[32], path[64];
	struct race r = {o, folder(dir)};

	for (int i = 0; i < 7; i++) {
		snprintf(path, sizeof(path), "%s/%d", dir, i);
		write_file(path, path);
	}
	for (int i = 0; i < 4; i++)
		expect_eq(pthread_create(&threads[i], NULL, race, &r), 0);
	for (int i = 0; i < 4; i++)
		expect_eq(pthread_join(threads[i], NULL), 0);
	expect_eq(objects_count(o).n_objects, 1);
	expect_eq(objects_count(o).n_open, 0);
	for (int i = 0; i < 7; i++) {
		snprintf(path, sizeof(path), "%s/%d", dir, i);
		unlink(path);
	}
	rmdir(dir);
	objects_free(o);
}

static int use(void *context)
{
	const struct andiron_objects *t = &objects_service;
	struct andiron_str name = text("/bin/sh"), id = text("abcd");
	struct objects *o = NULL;
	uint64_t object;
	int fd, r = objects_new(&o, NULL);

	if (r < 0)
		return r;
	fd = open("/bin/sh", O_RDONLY | O_CLOEXEC);
	r = t->intern(o, fd, &name, &name, &object);
	if (r == 0)
		r = t->identify(o, object, &id, &id, &id);
	close(fd);
	objects_free(o);
	return r;
}

TEST(running_out_of_memory_leaks_nothing)
{
	test_each_failing_allocation(use, NULL);
}

/* The generation may be unknown to one of two who ask; nothing else may differ. */
TEST(identity_compares_all_it_knows)
{
	struct andiron_object_key a = {1, 2, 3, 4}, b = a;

	expect(identity_same(&a, &b) && identity_hash(&a) == identity_hash(&b));
	b.generation = 0;
	expect(identity_same(&a, &b) && identity_hash(&a) == identity_hash(&b));
	b.generation = 9;
	expect(!identity_same(&a, &b));
	b = a;
	b.change_ns++;
	expect(!identity_same(&a, &b));
	b = a;
	b.inode++;
	expect(!identity_same(&a, &b));
}

static void content_is(int fd, const char *content)
{
	_cleanup_(buf_free) struct buf b = BUF_NULL;

	expect_eq(file_read_fd(fd, &b, 64), 0);
	expect_str(buf_str(&b), content);
	close(fd);
}

/* A split unit is opened by its path, absolute or from the program's folder; what is not named as
 * one, leads up, or is a link, is not. */
static void split_units(struct objects *o, const struct andiron_objects *t, uint64_t object,
			const char *dir)
{
	static const char *const refused[] = {"sub/a.o",      "/etc/passwd",  "sub/../sub/a.dwo",
					      "sub/link.dwo", "sub/none.dwo", ""};
	char path[4200];
	struct andiron_str name;
	int32_t fd;

	snprintf(path, sizeof(path), "%s/sub", dir);
	expect_eq(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "%s/sub/link.dwo", dir);
	expect_eq(symlink("a.dwo", path), 0);
	snprintf(path, sizeof(path), "%s/sub/a.dwo", dir);
	write_file(path, "split");
	name = text(path);
	expect_eq(t->open_named(o, object, ANDIRON_OPEN_SPLIT, &name, &fd), 0);
	content_is(fd, "split");
	name = text("sub/a.dwo");
	expect_eq(t->open_named(o, object, ANDIRON_OPEN_SPLIT, &name, &fd), 0);
	content_is(fd, "split");
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		name = text(refused[i]);
		expect_eq(t->open_named(o, object, ANDIRON_OPEN_SPLIT, &name, &fd), -ENOENT);
	}
}

/* A debug link is looked for beside the file and below, packages by the file's name; a name that
 * leads elsewhere opens nothing, nor does what is no file. */
TEST(files_of_an_object_are_found_by_name)
{
	const struct andiron_objects *t = &objects_service;
	struct objects *o = make();
	char dir[32], path[64], below[64];
	struct andiron_str name = text("x.debug"), bad = text("../x.debug"), dot = text("..");
	struct andiron_str p;
	uint64_t object;
	int32_t fd;
	int own;

	folder(dir);
	snprintf(path, sizeof(path), "%s/x", dir);
	p = text(path);
	write_file(path, "program");
	own = open(path, O_RDONLY | O_CLOEXEC);
	expect_eq(t->intern(o, own, &p, &p, &object), 0);
	expect_eq(t->open_named(o, object, ANDIRON_OPEN_DEBUG_LINK, &name, &fd), -ENOENT);
	expect_eq(t->open(o, object, ANDIRON_OPEN_PACKAGE, &fd), -ENOENT);
	snprintf(below, sizeof(below), "%s/.debug", dir);
	expect_eq(mkdir(below, 0755), 0);
	snprintf(below, sizeof(below), "%s/.debug/x.debug", dir);
	write_file(below, "below");
	expect_eq(t->open_named(o, object, ANDIRON_OPEN_DEBUG_LINK, &name, &fd), 0);
	content_is(fd, "below");
	snprintf(below, sizeof(below), "%s/x.debug", dir);
	write_file(below, "beside");
	expect_eq(t->open_named(o, object, ANDIRON_OPEN_DEBUG_LINK, &name, &fd), 0);
	content_is(fd, "beside");
	snprintf(below, sizeof(below), "%s/x.dwp", dir);
	write_file(below, "package");
	expect_eq(t->open(o, object, ANDIRON_OPEN_PACKAGE, &fd), 0);
	content_is(fd, "package");
	split_units(o, t, object, dir);
	expect_eq(t->open_named(o, object, ANDIRON_OPEN_DEBUG_LINK, &bad, &fd), -ENOENT);
	expect_eq(t->open_named(o, object, ANDIRON_OPEN_DEBUG_LINK, &dot, &fd), -ENOENT);
	expect_eq(t->open_named(o, object, ANDIRON_OPEN_BUILD_ID, &bad, &fd), -ENOENT);
	expect_eq(t->open_named(o, object, 99, &name, &fd), -ENOENT);
	t->release(o, object);
	close(own);
	objects_free(o);
}
