/* SPDX-License-Identifier: Apache-2.0 */
/* A program that profiles itself: it works for some seconds, and its profile is in a file then.
 *
 *     cc -O1 -g profile-itself.c $(pkg-config --cflags --libs andiron) -o profile-itself
 *     sudo ./profile-itself 5 itself.pb.gz && andiron report itself.pb.gz
 *
 * Sampling needs CAP_BPF and CAP_PERFMON (or root); without them andiron_start says so, and the
 * program goes on without a profile. */
#include <andiron/embed.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)

/* Each profile replaces the one before. On a thread of andiron's, one call at a time. */
static int32_t keep(void *context, const struct andiron_profile *profile)
{
	const char *path = context;
	FILE *file = fopen(path, "wb");
	int whole = file && fwrite(profile->bytes, 1, profile->n_bytes, file) == profile->n_bytes;

	if (file && fclose(file) != 0)
		whole = 0;
	return whole ? 0 : -1;
}

static int complain(char *why)
{
	fprintf(stderr, "no profile: %s\n", why ? why : "out of memory");
	andiron_text_free(why);
	return -1;
}

static int begin(char *path, struct andiron **ret)
{
	const struct andiron_embed how = {
		.size = sizeof(how),
		.plugin_dirs = getenv("PLUGIN_DIRS"),
		.worker = getenv("WORKER"),
	};
	char text[512], *why = NULL;

	snprintf(text, sizeof(text),
		 "pyroscope.ebpf \"self\" {\n"
		 "  targets    = [{\"__process_pid__\" = \"%d\", \"service_name\" = \"itself\"}]\n"
		 "  targets_only = true\n"
		 "  forward_to = [embed.profiles.file.receiver]\n"
		 "}\n"
		 "embed.profiles \"file\" {}\n",
		 (int)getpid());
	if (andiron_open(&how, ret, &why) < 0)
		return complain(why);
	if (andiron_on_profiles(*ret, "file", ANDIRON_FORM_PPROF, keep, path, &why) < 0 ||
	    andiron_load(*ret, "itself", text, strlen(text), &why) < 0 ||
	    andiron_start(*ret, &why) < 0)
		return complain(why);
	return 0;
}

/* What the program is for. */
static __attribute__((noinline)) double work(int64_t seconds)
{
	time_t end = time(NULL) + seconds;
	double sum = 0;

	for (unsigned int i = 1; i % 4096 != 0 || time(NULL) < end; i++)
		sum += 1.0 / i;
	return sum;
}

int main(int argc, char **argv)
{
	struct andiron *a = NULL;
	char *why = NULL;
	int began;

	if (argc != 3) {
		fprintf(stderr, "usage: profile-itself SECONDS FILE.pb.gz\n");
		return 2;
	}
	began = begin(argv[2], &a);
	printf("%f\n", work(strtol(argv[1], NULL, 10)));
	if (began == 0 && andiron_stop(a, 10 * SECOND, &why) < 0)
		complain(why);
	andiron_close(a);
	return began < 0;
}
