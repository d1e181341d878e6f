/* SPDX-License-Identifier: Apache-2.0 */
/* One plugin file: checked, loaded, its entry found and checked. Loaded by its path and not through
 * /proc/self/fd, because the loader knows a library by that name (a reused number would give
 * another plugin) and so do debuggers and stack traces; that it is still the file that was checked
 * is asked afterwards. */
#include "base/cleanup.h"
#include "host/registry.h"
#include "host/registry/describe-check.h"
#include "host/registry/elf-check.h"
#include "host/registry/symbol-capture.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define NEWEST_ABI_TO_NAME 9

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
static int examine(const char *path, struct stat *ret_st, struct error *err)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct plugin_file file;
	int r;

	if (fd < 0 || fstat(fd, ret_st) < 0)
		return error_errno(err, -errno, "it cannot be opened");
	if (ret_st->st_mode & S_IWOTH)
		return error_set(err, -ENOEXEC,
				 "anybody may write to it (mode %04o): run `chmod o-w` on it",
				 ret_st->st_mode & 07777);
	r = elf_check(fd, &file, err);
	return r < 0 ? r : symbol_capture_check(&file, err);
}

int registry_load(const char *path, const struct andiron_plugin **ret, void **ret_library,
		  struct error *err)
{
	const struct andiron_plugin *plugin;
	struct stat before, after;
	void *library;
	int r = examine(path, &before, err);

	if (r < 0)
		return r;
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return refuse_by_loader(dlerror(), err);
	if (stat(path, &after) < 0 || !same_file(&before, &after))
		return error_set(err, -ENOEXEC, "it was replaced while it was loaded; start again");
	plugin = (const struct andiron_plugin *)dlsym(library, ANDIRON_PLUGIN_SYMBOL);
	if (!plugin)
		return refuse_by_entry(library, err);
	r = describe_check(plugin, err);
	if (r < 0)
		return r;
	*ret = plugin;
	if (ret_library)
		*ret_library = library;
	return 0;
}
