/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of paths, and the files that they find. */
#include "base/buf.h"
#include "discovery/path-search.h"
#include "testing/test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

TEST(whole_paths_match)
{
	static const struct {
		const char *pattern, *path;
		bool matches;
	} cases[] = {
		{"/var/log/*.log", "/var/log/a.log", true},
		{"/var/log/*.log", "/var/log/deep/a.log", false},
		{"/var/log/*.log", "var/log/a.log", false},
		{"/var//log/*", "/var/log/a", true},
		{"/var/log/**/*.log", "/var/log/a.log", true},
		{"/var/log/**/*.log", "/var/log/deep/er/a.log", true},
		{"/var/log/**", "/var/log/deep/er/a.log", true},
		{"/var/log/**", "/var/lib/a", false},
		{"/**/pods/**/[0-9].log", "/var/log/pods/x/y/7.log", true},
		{"/**/pods/**/[^0-9].log", "/var/log/pods/x/y/7.log", false},
		{"/**/**/**/a", "/a", true},
		{"/**/a/**/b/**/c", "/a/x/b/a/b/y/c", true},
		{"/**/a/**/b/**/c", "/a/x/c/y/c", false},
		{"/a/{b,c}/d", "/a/c/d", true},
		{"/a/{b,c}/d", "/a/{b,c}/d", false},
		{"/a{,/b,/c{d,e}}/x", "/a/x", true},
		{"/a{,/b,/c{d,e}}/x", "/a/ce/x", true},
		{"/a{,/b,/c{d,e}}/x", "/a/c/x", false},
		{"/a/\\{b\\}", "/a/{b}", true},
		{"/a/.*", "/a/.hidden", true},
		{"/a/*", "/a/.hidden", true},
		{"/a/??", "/a/bc", true},
		{"/a/??", "/a/b", false},
		{"/a/./b/../c", "/a/c", true},
		{"./a/*", "a/b", true},
		{"/../a", "/a", true},
		{"*/../b", "b", false}, /* the disk alone knows where .. leads from there */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct path_pattern p;

		expect_eq(path_pattern_read(str_of(cases[i].pattern), &p), 0);
		if (path_pattern_matches(&p, cases[i].path) != cases[i].matches)
			printf("# %s on %s\n", cases[i].pattern, cases[i].path);
		expect_eq(path_pattern_matches(&p, cases[i].path), cases[i].matches);
		path_pattern_free(&p);
	}
}

/* What stands for more than can be looked for is refused before it takes memory. */
TEST(patterns_are_bounded)
{
	struct path_pattern p;
	struct buf long_one = BUF_NULL;

	expect_eq(path_pattern_read(STR("/a/{b,c"), &p), -EINVAL);
	expect_eq(path_pattern_read(STR("/a/{b,{c}"), &p), -EINVAL);
	expect_eq(path_pattern_read((struct str){"/a\0b", 4}, &p), -EINVAL);
	expect_eq(path_pattern_read(STR("{a,b,c,d}{a,b,c,d}{a,b,c,d}{a,b,c,d}{a,b,c,d}"), &p),
		  -E2BIG);
	for (int i = 0; i < 100; i++)
		buf_printf(&long_one, "{a}");
	expect_eq(path_pattern_read(buf_str(&long_one), &p), -E2BIG);
	buf_clear(&long_one);
	for (int i = 0; i <= PATH_PATTERN_PARTS; i++)
		buf_printf(&long_one, "/a");
	expect_eq(path_pattern_read(buf_str(&long_one), &p), -E2BIG);
	while (long_one.n < PATH_MAX)
		buf_printf(&long_one, "/aaaa");
	expect_eq(path_pattern_read(buf_str(&long_one), &p), -E2BIG);
	expect_eq(p.forms.n, 0);
	buf_free(&long_one);
}

static void make(const char *path)
{
	int fd;

	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		char folder[PATH_MAX];

		snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
		mkdir(folder, 0755);
	}
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	expect(fd >= 0);
	close(fd);
}

static int remove_one(const char *path, const struct stat *is, int what, struct FTW *at)
{
	return remove(path);
}

static void remove_all(const char *folder)
{
	expect(chdir("/") == 0);
	expect_eq(nftw(folder, remove_one, 128, FTW_DEPTH | FTW_PHYS), 0);
}

/* The paths found, without the folder of the test, a line each. */
static struct str found(struct path_search *s, const char *pattern, struct buf *out)
{
	char here[PATH_MAX];
	struct path_pattern p;

	expect(getcwd(here, sizeof(here)));
	expect_eq(path_pattern_read(str_of(pattern), &p), 0);
	expect_eq(path_search_run(s, &p), 0);
	buf_clear(out);
	vec_each (&s->found, path) {
		expect(strncmp(*path, here, strlen(here)) == 0);
		buf_printf(out, "%s\n", *path + strlen(here) + 1);
	}
	path_pattern_free(&p);
	return buf_str(out);
}

TEST(files_are_found)
{
	char folder[] = "/tmp/andiron-paths-XXXXXX", pattern[100];
	struct path_search s = {.not_before_ns = INT64_MIN};
	struct path_pattern exclude;
	struct buf out = BUF_NULL;

	expect(mkdtemp(folder) && chdir(folder) == 0);
	make("b/one.log");
	make("a/deep/er/two.log");
	make("a/deep/.three.log");
	make("a/deep/four.txt");
	expect(mkdir("a/is.log", 0755) == 0);
	expect(symlink("..", "a/deep/up") == 0); /* a circle, for who follows it */
	expect(symlink("a/deep", "link") == 0);

	expect_str(found(&s, "**/*.log", &out),
		   "a/deep/.three.log\na/deep/er/two.log\nb/one.log\n");
	expect_str(found(&s, "a/**", &out),
		   "a/deep/.three.log\na/deep/er/two.log\na/deep/four.txt\n");
	expect_str(found(&s, "*/*.log", &out), "b/one.log\nlink/.three.log\n");
	expect_str(found(&s, "{b,c}/one.log", &out), "b/one.log\n");
	expect_str(found(&s, "{**,b/**,b}/one.log", &out), "b/one.log\n");
	expect_str(found(&s, "none/**/x", &out), "");
	snprintf(pattern, sizeof(pattern), "%s/a/*/f*", folder);
	expect_str(found(&s, pattern, &out), "a/deep/four.txt\n");

	expect_eq(path_pattern_read(STR("**/d*/**"), &exclude), 0);
	s.exclude = &exclude;
	expect_str(found(&s, "**/*.log", &out), "b/one.log\n");
	s.exclude = NULL;
	s.not_before_ns = INT64_MAX;
	expect_str(found(&s, "**/*.log", &out), "");
	expect_eq(s.left_out, 0);
	expect(!s.cut && s.entries > 20);
	s.not_before_ns = INT64_MIN;
	s.stop = true;
	expect_str(found(&s, "**/*.log", &out), "");
	expect_str(found(&s, "b/one.log", &out), "");

	path_pattern_free(&exclude);
	path_search_free(&s);
	buf_free(&out);
	remove_all(folder);
}

/* A form for each way to a file, and far more of them than files may be found. */
TEST(what_is_found_twice_counts_once)
{
	char folder[] = "/tmp/andiron-paths-XXXXXX", path[100];
	struct path_search s = {.not_before_ns = INT64_MIN, .n_before = PATH_SEARCH_FILES - 50};
	struct buf out = BUF_NULL, wanted = BUF_NULL;

	expect(mkdtemp(folder) && chdir(folder) == 0);
	for (int i = 10; i < 60; i++) {
		snprintf(path, sizeof(path), "d/%d", i);
		make(path);
		buf_printf(&wanted, "%s\n", path);
	}
	expect_str(found(&s, "{d/*,*/*,**/*,d/1?,d/??}", &out), wanted.p);
	expect_eq(s.left_out, 0);
	path_search_free(&s);
	buf_free(&wanted);
	buf_free(&out);
	remove_all(folder);
}

static void *search_deep(void *arg)
{
	struct buf *out = arg;
	struct path_search s = {.not_before_ns = INT64_MIN};

	found(&s, "**/d/**/f*", out);
	expect_eq(s.found.n, 1);
	path_search_free(&s);
	return NULL;
}

/* Folders as deep as they are followed, on a stack as small as a worker's. */
TEST(deep_folders_fit_the_stack)
{
	char folder[] = "/tmp/andiron-paths-XXXXXX";
	struct buf out = BUF_NULL, path = BUF_NULL;
	pthread_attr_t attr;
	pthread_t thread;

	expect(mkdtemp(folder) && chdir(folder) == 0);
	for (int i = 0; i < PATH_SEARCH_DEPTH; i++)
		buf_printf(&path, "d/");
	buf_printf(&path, "file%c", 0);
	make(path.p);
	expect(pthread_attr_init(&attr) == 0 && pthread_attr_setstacksize(&attr, 256 << 10) == 0);
	expect_eq(pthread_create(&thread, &attr, search_deep, &out), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
	buf_free(&path);
	buf_free(&out);
	remove_all(folder);
}

/* A folder that nobody may read is told; one that is none, or not there, is nothing. */
TEST(what_cannot_be_read_is_told)
{
	struct path_search s = {.not_before_ns = INT64_MIN};
	struct buf out = BUF_NULL;

	found(&s, "/proc/self/status/*", &out);
	found(&s, "/none/such/*", &out);
	expect_eq(s.unreadable, 0);
	expect_eq(s.failed, 0);
	path_search_free(&s);
	buf_free(&out);
}

/* Files of all runs together are bounded. */
TEST(too_many_files_are_counted)
{
	char folder[] = "/tmp/andiron-paths-XXXXXX";
	struct path_search s = {.not_before_ns = INT64_MIN, .n_before = PATH_SEARCH_FILES - 2};
	struct buf out = BUF_NULL;

	expect(mkdtemp(folder) && chdir(folder) == 0);
	make("a");
	make("b");
	make("c");
	expect_eq(found(&s, "*", &out).n, 4);
	expect_eq(s.left_out, 1);
	expect_str(found(&s, "*", &out), "");
	expect_eq(s.left_out, 4);
	path_search_free(&s);
	buf_free(&out);
	remove_all(folder);
}
