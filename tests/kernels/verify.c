/* SPDX-License-Identifier: Apache-2.0 */
/* Shows each kernel program of objects to the verifier by itself, and tells what came of it:
 *
 *     verify FILE.bpf.o…
 *
 *     NAME verified N      instructions that were walked, by the verifier's own log,
 *                          which has them on kernels that tell them nowhere else
 *     NAME refused CODE    and what libbpf and the end of the log say, behind "# "
 *
 * Which of them the sampler needs on this kernel is not known here; `load` finds that out. Fails
 * only when it cannot do its work. */

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_BYTES (4u << 20)
#define LOG_LINES 1u /* BPF_LOG_LEVEL1 and BPF_LOG_STATS of the kernel */
#define LOG_STATS 4u
#define TAIL      3000

static bool speak; /* libbpf says why, where it is not the verifier */

#pragma GCC diagnostic ignored "-Wmissing-format-attribute" /* libbpf's own type has none */

static int print(enum libbpf_print_level level, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));

static int print(enum libbpf_print_level level, const char *format, va_list args)
{
	if (!speak || level == LIBBPF_DEBUG || strstr(format, "BTF")) /* at length, and needless */
		return 0;
	printf("# ");
	return vprintf(format, args);
}

/* Loads the program of that name alone. 0 or a negative errno; `log` is terminated. */
static int load(const char *path, const char *name, unsigned int level, char *log)
{
	struct bpf_object *object = bpf_object__open_file(path, NULL);
	struct bpf_program *program;
	int r;

	*log = '\0';
	if (!object)
		return -errno;
	bpf_object__for_each_program (program, object)
		bpf_program__set_autoload(program, strcmp(bpf_program__name(program), name) == 0);
	program = bpf_object__find_program_by_name(object, name);
	bpf_program__set_log_level(program, level);
	bpf_program__set_log_buf(program, log, LOG_BYTES);
	r = bpf_object__load(object);
	bpf_object__close(object);
	return r;
}

/* The last lines, each as a comment. */
static void print_tail(char *log)
{
	size_t n = strlen(log);
	char *rest = log + (n > TAIL ? n - TAIL : 0), *line;

	while ((line = strsep(&rest, "\n")) != NULL)
		printf("# %s\n", line);
}

static void verify(const char *path, const char *name, char *log)
{
	int r = load(path, name, LOG_STATS, log);
	const char *told = strstr(log, "processed ");

	if (r == 0) {
		printf("%s verified %lu\n", name,
		       told ? strtoul(told + strlen("processed "), NULL, 10) : 0);
		return;
	}
	printf("%s refused %d %s\n", name, -r, strerror(-r));
	print_tail(log); /* why; what follows is cut off where it is long, before Linux 6.4 */
	speak = true;
	load(path, name, LOG_LINES, log);
	speak = false;
	print_tail(log);
}

static int verify_all(const char *path, char *log)
{
	struct bpf_object *object = bpf_object__open_file(path, NULL);
	struct bpf_program *program;

	if (!object)
		return -errno;
	bpf_object__for_each_program (program, object)
		verify(path, bpf_program__name(program), log);
	bpf_object__close(object);
	return 0;
}

int main(int argc, char **argv)
{
	char *log = malloc(LOG_BYTES);
	int r = log ? 0 : -ENOMEM;

	libbpf_set_print(print);
	for (int i = 1; i < argc && r == 0; i++)
		r = verify_all(argv[i], log);
	if (r != 0)
		fprintf(stderr, "verify: %s\n", strerror(-r));
	free(log);
	return r != 0;
}
