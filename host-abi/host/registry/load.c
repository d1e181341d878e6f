/* SPDX-License-Identifier: Apache-2.0 */
/* One plugin file: checked, loaded, its entry found and checked. Loaded by its path and not through
 * /proc/self/fd, because the loader knows a library by that name (a reused number would give
 * another plugin) and so do debuggers and stack traces; that it is still the file that was checked
 * is asked afterwards. Where who started the process is not to be trusted, it is the descriptor.
 *
 * The loader also takes a name that it has seen for the library that it has under that name,
 * whatever file is there by now. A file that has replaced another is therefore loaded by a name
 * that means the same: DIR/./FILE, DIR/././FILE, and so on. */
#include "base/cleanup.h"
#include "host/registry.h"
#include "host/registry/describe-check.h"
#include "host/registry/elf-check.h"
#include "host/registry/generation.h"
#include "host/registry/symbol-capture.h"
#include "host/registry/trust.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define NEWEST_ABI_TO_NAME 9

/* A file that has passed what can be asked before it is mapped. */
struct examined {
	int fd;
	struct stat st;
	char build_id[PLUGIN_FILE_BUILD_ID];
};

static void examined_fini(const struct examined *e)
{
	closep(&e->fd);
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* The loader quotes the file, which may hold anything. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || (unsigned char)*text > '~')
			*text = '?';
}

/* dlopen's words into a cause and what to do about it. */
static int refuse_by_loader(char *said, struct error *err)
{
	static const char undefined[] = "undefined symbol: ";
	static const char missing[] = ": cannot open shared object file";
	struct str text = str_of(said ? said : "the loader gives no reason");
	size_t at;

	if (said)
		make_printable(said);
	at = str_search(text, str_of(undefined));

	if (at < text.n) {
		struct str symbol = str_skip(text, at + sizeof(undefined) - 1);

		return error_set(
			err, -ENOEXEC,
			"it needs the symbol %.*s, which no library that it names has: it was "
			"built for another system; build it again here",
			STR_FMT(str_first(symbol, str_find(symbol, '('))));
	}
	at = str_search(text, str_of(missing));
	if (at < text.n)
		return error_set(err, -ENOEXEC,
				 "it needs the library %.*s, which cannot be found; install it",
				 STR_FMT(str_first(text, at)));
	return error_set(err, -ENOEXEC, "the loader refuses it: %.*s", STR_FMT(text));
}

/* Names the version that the plugin was built for, if it has an entry at all. */
static int refuse_by_entry(void *library, struct error *err)
{
	for (int version = 0; version <= NEWEST_ABI_TO_NAME; version++) {
		char symbol[32];

		snprintf(symbol, sizeof(symbol), "andiron_plugin_v%d", version);
		if (version != ANDIRON_ABI_MAJOR && dlsym(library, symbol))
			return error_set(
				err, -ENOEXEC,
				"it was built for version %d of the plugin ABI (it exports "
				"%s), and this andiron has version %d; install the plugin's "
				"build for this andiron",
				version, symbol, ANDIRON_ABI_MAJOR);
	}
	return error_set(err, -ENOEXEC,
			 "it is no andiron plugin: it does not export " ANDIRON_PLUGIN_SYMBOL);
}

/* Opens and checks the file without running or mapping anything of it. */
static int examine(const char *path, struct examined *ret, struct error *err)
{
	struct plugin_file file;
	int r;

	ret->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (ret->fd < 0 || fstat(ret->fd, &ret->st) < 0)
		return error_errno(err, -errno, "it cannot be opened");
	if (ret->st.st_mode & S_IWOTH)
		return error_set(err, -ENOEXEC,
				 "anybody may write to it (mode %04o): run `chmod o-w` on it",
				 ret->st.st_mode & 07777);
	r = trust_check(path, &ret->st, trust_needed(), err);
	if (r < 0)
		return r;
	r = elf_check(ret->fd, &file, err);
	if (r < 0)
		return r;
	plugin_file_build_id(&file, ret->build_id);
	return symbol_capture_check(&file, err);
}

/* The n-th name of a file; false: it is too long. */
static bool put_name(char name[PATH_MAX], const char *path, unsigned int n)
{
	const char *slash = strrchr(path, '/');
	size_t dir = slash ? (size_t)(slash - path) + 1 : 0, rest = strlen(path + dir);

	if (dir + 2ull * n + rest >= PATH_MAX)
		return false;
	memcpy(name, path, dir);
	for (unsigned int i = 0; i < n; i++)
		memcpy(name + dir + 2ull * i, "./", 2);
	memcpy(name + dir + 2ull * n, path + dir, rest + 1);
	return true;
}

/* By the first name that no other file is known by. Where the path could be anybody's choice, the
 * descriptor that was examined is the name: no debugger gets into such a process anyway. */
static int open_library(const char *path, const struct examined *e, void **ret, struct error *err)
{
	char name[PATH_MAX], by_fd[64];

	if (trust_needed() == TRUST_ROOT) {
		snprintf(by_fd, sizeof(by_fd), "/proc/self/fd/%d", e->fd);
		path = by_fd;
	}
	for (unsigned int n = 0; put_name(name, path, n); n++) {
		void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
		const struct plugin_generation *g = generation_of_library(library);

		if (!library)
			return refuse_by_loader(dlerror(), err);
		if (!g || generation_is_file(g, &e->st)) {
			*ret = library;
			return 0;
		}
		dlclose(library); /* this reference only */
	}
	return error_set(err, -ENOEXEC, "it was replaced too often; restart the process");
}

static int check_library(void *library, const struct andiron_plugin **ret, struct error *err)
{
	const struct andiron_plugin *plugin =
		(const struct andiron_plugin *)dlsym(library, ANDIRON_PLUGIN_SYMBOL);
	int r = plugin ? describe_check(plugin, err) : refuse_by_entry(library, err);

	if (r == 0)
		*ret = plugin;
	return r;
}

static bool has_process(const struct andiron_plugin *plugin)
{
	for (uint64_t i = 0; i < plugin->n_components; i++)
		if (ANDIRON_HAS(plugin->components[i], andiron_component, subprocess) ||
		    ANDIRON_HAS(plugin->components[i], andiron_component, sender))
			return true;
	return false;
}

static int load(const char *path, const struct examined *e, bool forget,
		const struct andiron_plugin **ret, void **ret_library, struct error *err)
{
	struct plugin_generation *g;
	struct stat after = {0};
	bool replaced;
	int r = open_library(path, e, ret_library, err);

	if (r < 0)
		return r;
	replaced = stat(path, &after) < 0 || !same_file(&e->st, &after);
	g = forget ? NULL : generation_of_library(*ret_library);
	if (!forget && !g) {
		g = generation_add(*ret_library, path, replaced ? &after : &e->st,
				   replaced ? "" : e->build_id);
		if (!g)
			return error_set(err, -ENOMEM, "out of memory");
	}
	if (replaced)
		return error_set(err, -ENOEXEC, "it was replaced while it was loaded; try again");
	r = check_library(*ret_library, ret, err);
	if (r == 0 && g && !g->plugin)
		generation_accept(g, *ret);
	return r;
}

static int load_once(const char *path, const struct examined *e, const struct andiron_plugin **ret,
		     struct error *err)
{
	const struct plugin_generation *known = NULL;
	void *library;
	int r = generation_find(path, &e->st, e->build_id, &known, err);

	if (r == 0 && known)
		*ret = known->plugin;
	return r < 0 || known ? r : load(path, e, false, ret, &library, err);
}

int registry_load_kept(const char *path, const struct andiron_plugin **ret, int *ret_fd,
		       struct error *err)
{
	_cleanup_(examined_fini) struct examined e = {.fd = -1};
	int r = examine(path, &e, err);

	if (r == 0)
		r = load_once(path, &e, ret, err);
	if (r == 0)
		*ret_fd = has_process(*ret) ? take_fd(e.fd) : -1;
	return r;
}

int registry_load(const char *path, const struct andiron_plugin **ret, void **ret_library,
		  struct error *err)
{
	_cleanup_(examined_fini) struct examined e = {.fd = -1};
	int r = examine(path, &e, err);

	if (r < 0)
		return r;
	return ret_library ? load(path, &e, true, ret, ret_library, err)
			   : load_once(path, &e, ret, err);
}
