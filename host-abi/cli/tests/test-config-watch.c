/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of when a configuration counts as changed. The agent that follows it is run by
 * tests/scenario/reloads.py. */
#include "cli/run/config-watch.h"

#include "base/clock.h"
#include "base/file.h"
#include "testing/test.h"

#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEADLINE_MS 60000

static char folder[64];

static const char *in(const char *name)
{
	static char paths[4][128];
	static unsigned int n;
	char *path = paths[n++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
	return path;
}

static void write_into(const char *name, const char *text)
{
	int fd = open(in(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	expect(fd >= 0);
	expect_eq(file_write_fd(fd, text, strlen(text)), 0);
	close(fd);
}

static void make_folder(void)
{
	snprintf(folder, sizeof(folder), "/tmp/andiron-watch-XXXXXX");
	expect(mkdtemp(folder));
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	return remove(path);
}

static void remove_folder(void)
{
	expect_eq(nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static struct config_watch *watch_path(const char *path)
{
	static char *paths[1];
	static char text[128];
	struct config_watch *w = NULL;

	snprintf(text, sizeof(text), "%s", path);
	paths[0] = text;
	expect_eq(config_watch_new(paths, 1, &w, NULL), 0);
	expect_eq(config_watch_blind(w), 0);
	return w;
}

static bool readable(const struct config_watch *w, int ms)
{
	struct pollfd fd = {.fd = config_watch_fd(w), .events = POLLIN};

	return poll(&fd, 1, ms) == 1;
}

static bool says_changed(struct config_watch *w)
{
	while (readable(w, DEADLINE_MS))
		if (config_watch_take(w))
			return true;
	return false;
}

/* Nothing is said for twice the time in which a change would be. What others do in /tmp wakes it,
 * too. */
static bool is_quiet(struct config_watch *w)
{
	int64_t left, end = clock_mono() + 200 * NS_PER_MSEC;

	while ((left = end - clock_mono()) > 0)
		if (readable(w, (int)(left / NS_PER_MSEC)) && config_watch_take(w))
			return false;
	return true;
}

/* Written in place, renamed over, removed and made again: each is said. */
TEST(a_file)
{
	struct config_watch *w;

	make_folder();
	write_into("a.alloy", "1");
	w = watch_path(in("a.alloy"));
	expect(is_quiet(w));
	write_into("a.alloy", "2");
	expect(says_changed(w));
	write_into("new", "3");
	expect_eq(rename(in("new"), in("a.alloy")), 0);
	expect(says_changed(w));
	write_into("a.alloy", "4"); /* the one that is there now */
	expect(says_changed(w));
	expect_eq(unlink(in("a.alloy")), 0);
	expect(says_changed(w));
	write_into("a.alloy", "5");
	expect(says_changed(w));
	write_into("whole", "6");
	expect_eq(unlink(in("a.alloy")), 0);
	expect(says_changed(w));
	expect_eq(link(in("whole"), in("a.alloy")), 0); /* which nobody closes */
	expect(says_changed(w));
	expect(is_quiet(w));
	config_watch_free(w);
	remove_folder();
}

/* What happens beside the file is not said, nor is a file that has been made and not written. */
TEST(what_is_beside)
{
	struct config_watch *w;
	int fd;

	make_folder();
	w = watch_path(in("a.alloy"));
	write_into("b.alloy", "1");
	expect_eq(unlink(in("b.alloy")), 0);
	fd = open(in("a.alloy"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	expect(fd >= 0);
	expect(is_quiet(w));
	close(fd);
	expect(says_changed(w));
	config_watch_free(w);
	remove_folder();
}

static void new_revision(const char *dir, const char *text)
{
	char file[64];

	expect_eq(mkdir(in(dir), 0700), 0);
	snprintf(file, sizeof(file), "%s/a.alloy", dir);
	write_into(file, text);
	expect_eq(symlink(dir, in("..data_tmp")), 0);
	expect_eq(rename(in("..data_tmp"), in("..data")), 0);
}

static void drop_revision(const char *dir)
{
	char file[64];

	snprintf(file, sizeof(file), "%s/a.alloy", dir);
	expect_eq(unlink(in(file)), 0);
	expect_eq(rmdir(in(dir)), 0);
}

/* A ConfigMap as the kubelet changes it, revision after revision, given as file or as directory. */
TEST(a_config_map)
{
	for (int whole = 0; whole < 2; whole++) {
		struct config_watch *w;

		make_folder();
		new_revision("..1", "1");
		expect_eq(symlink("..data/a.alloy", in("a.alloy")), 0);
		w = watch_path(whole ? folder : in("a.alloy"));
		expect(is_quiet(w));
		new_revision("..2", "2");
		expect(says_changed(w));
		drop_revision("..1");
		new_revision("..3", "3");
		expect(says_changed(w));
		drop_revision("..2");
		expect(is_quiet(w));
		config_watch_free(w);
		remove_folder();
	}
}

/* A directory of files: one more, one less, one written; others do not matter. */
TEST(a_directory)
{
	struct config_watch *w;

	make_folder();
	write_into("a.alloy", "1");
	w = watch_path(folder);
	write_into("b.alloy", "1");
	expect(says_changed(w));
	write_into("notes", "1");
	write_into(".a.alloy", "1");
	expect(is_quiet(w));
	expect_eq(unlink(in("b.alloy")), 0);
	expect(says_changed(w));
	write_into("a.alloy", "2");
	expect(says_changed(w));
	config_watch_free(w);
	remove_folder();
}

/* A directory on the way that goes and comes back is walked anew. */
TEST(a_directory_on_the_way)
{
	struct config_watch *w;

	make_folder();
	expect_eq(mkdir(in("etc"), 0700), 0);
	write_into("etc/a.alloy", "1");
	w = watch_path(in("etc/a.alloy"));
	expect_eq(rename(in("etc"), in("old")), 0);
	expect(says_changed(w));
	write_into("old/a.alloy", "2");
	expect(is_quiet(w));
	expect_eq(mkdir(in("etc"), 0700), 0);
	expect(says_changed(w));
	write_into("etc/a.alloy", "3");
	expect(says_changed(w));
	config_watch_free(w);
	remove_folder();
}

/* Links that lead in a circle, and paths that are too long, are waited for like what is missing. */
TEST(ways_that_lead_nowhere)
{
	char longest[8192];
	char *paths[] = {longest};
	struct config_watch *w;

	make_folder();
	expect_eq(symlink("b", in("a")), 0);
	expect_eq(symlink("a", in("b")), 0);
	w = watch_path(in("a"));
	expect(is_quiet(w));
	expect_eq(unlink(in("a")), 0);
	expect(says_changed(w));
	config_watch_free(w);
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	expect_eq(config_watch_new(paths, 1, &w, NULL), 0);
	expect(is_quiet(w));
	config_watch_free(w);
	remove_folder();
}

/* Who asks to be told again is, once. */
TEST(again)
{
	struct config_watch *w;

	make_folder();
	w = watch_path(in("a.alloy"));
	config_watch_again(w, 1);
	expect(says_changed(w));
	expect(is_quiet(w));
	config_watch_free(w);
	remove_folder();
}
