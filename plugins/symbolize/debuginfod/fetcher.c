/* SPDX-License-Identifier: Apache-2.0 */
/* andiron-debuginfod [--lines] [--max-bytes N] [--cache-bytes N] BUILD-ID
 *
 * Prints the path of the debug file of a build id, fetched where it is not kept already
 * (debuginfod/debuginfod.h). A program of its own beside the plugin: who talks to strange servers
 * neither parses what they send nor samples, and its libraries (libcurl's) cost an agent that
 * fetches nothing no memory and no time. It holds no capability, makes no system call that only
 * others need, and where the kernel has Landlock it reaches no files but those of its folder and
 * what finding a server takes.
 *
 * Servers, folder and limits come from the environment that elfutils' client knows:
 * DEBUGINFOD_URLS, _CACHE_PATH, _TIMEOUT, _MAXTIME, _MAXSIZE. Ends with 0; 2: nobody has it; 1:
 * else, with a sentence. */
#include "base/cleanup.h"
#include "debuginfod/debuginfod.h"
#include "debuginfod/store.h"
#include "proc/client-files.h"
#include "proc/privileges.h"
#include "proc/syscall-filter.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <unistd.h>

static int usage(void)
{
	fputs("usage: andiron-debuginfod [--lines] [--max-bytes N] [--cache-bytes N] BUILD-ID\n",
	      stderr);
	return 1;
}

static bool number(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
	return text && str_u64(str_of(text), ret) && *ret >= min && *ret <= max;
}

/* Seconds, 0 or absent: ours. Never longer than ours: whoever started this waits no longer. */
static int64_t time_of(const char *name, int64_t ours_ms)
{
	uint64_t seconds;

	return number(getenv(name), 1, (uint64_t)ours_ms / 1000, &seconds) ? (int64_t)seconds * 1000
									   : ours_ms;
}

static bool take_option(struct debuginfod *d, int option)
{
	switch (option) {
	case 'l':
		d->lines_only = true;
		return true;
	case 'm':
		return number(optarg, 1, INT64_MAX, &d->max_bytes);
	case 'c':
		return number(optarg, 0, INT64_MAX, &d->folder_bytes);
	default:
		return false;
	}
}

static bool take_options(struct debuginfod *d, int argc, char **argv)
{
	static const struct option options[] = {{"lines", no_argument, NULL, 'l'},
						{"max-bytes", required_argument, NULL, 'm'},
						{"cache-bytes", required_argument, NULL, 'c'},
						{0}};
	uint64_t max;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (!take_option(d, option))
			return false;
	if (number(getenv("DEBUGINFOD_MAXSIZE"), 1, d->max_bytes, &max))
		d->max_bytes = max;
	d->stall_ms = time_of("DEBUGINFOD_TIMEOUT", DEBUGINFOD_STALL_MS);
	d->time_ms = time_of("DEBUGINFOD_MAXTIME", DEBUGINFOD_TIME_MS);
	d->urls = str_of(getenv("DEBUGINFOD_URLS"));
	return optind == argc - 1;
}

/* Files belong to the user who started it; nothing else is needed. The folder is made before: what
 * it lies in is not its own. */
static int confine(const char *folder, struct error *err)
{
	struct store store = STORE_NULL;
	int r = store_open(&store, folder, 0, err);

	if (r < 0)
		return r;
	store_close(&store);
	return client_files_confine(folder);
}

static int run(int argc, char **argv)
{
	struct debuginfod d = {.max_bytes = DEBUGINFOD_MAX_BYTES,
			       .folder_bytes = DEBUGINFOD_CACHE_BYTES};
	_cleanup_(buf_free) struct buf folder = BUF_NULL, path = BUF_NULL;
	struct error err = ERROR_NULL;
	int r;

	if (!take_options(&d, argc, argv))
		return usage();
	r = privileges_drop();
	if (r == 0)
		r = syscall_filter_install(SYSCALLS_PLAIN);
	if (r == 0)
		r = debuginfod_folder(&folder);
	if (r == 0)
		r = buf_putc(&folder, '\0');
	if (r == -ENOENT) {
		fputs("andiron-debuginfod: neither HOME nor DEBUGINFOD_CACHE_PATH says where to "
		      "keep files\n",
		      stderr);
		return 1;
	}
	d.folder = folder.p;
	if (r == 0)
		r = confine(d.folder, &err);
	if (r == 0)
		r = debuginfod_find(&d, str_of(argv[optind]), &path, &err);
	if (r == 0) {
		printf("%.*s\n", STR_FMT(buf_str(&path)));
		return 0;
	}
	fprintf(stderr, "andiron-debuginfod: %s\n",
		r == -ENOENT   ? "no server has it"
		: err.text[0]  ? err.text
		: r == -E2BIG  ? "it is too large"
		: r == -EINVAL ? "DEBUGINFOD_URLS names no server"
			       : "it cannot be fetched");
	return r == -ENOENT ? 2 : 1;
}

int main(int argc, char **argv)
{
	int code = run(argc, argv);

	/* At once: a sanitizer's leak checker would now look at files behind the walls. */
	fflush(stdout);
	_exit(code);
}
