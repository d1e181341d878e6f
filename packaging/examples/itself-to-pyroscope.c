/* SPDX-License-Identifier: Apache-2.0 */
/* A program whose own profile is in Pyroscope while it runs, and no other program's.
 *
 *     cc -O1 -g itself-to-pyroscope.c $(pkg-config --cflags --libs andiron) -o itself
 *     ./itself 60 http://localhost:4040
 *
 * It needs no privilege, only a kernel that lets a process sample itself
 * (kernel.perf_event_paranoid 2 or less). Where it does not, andiron_start says so, and the program
 * does its work without a profile. */
#include <andiron/embed.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CONFIGURATION                                                                              \
	"profile.self \"program\" {\n"                                                             \
	"  labels     = {\"service_name\" = \"itself-c\"}\n"                                       \
	"  forward_to = [pyroscope.write.server.receiver]\n"                                       \
	"}\n"                                                                                      \
	"pyroscope.write \"server\" {\n"                                                           \
	"  endpoint {\n"                                                                           \
	"    url = \"%s\"\n"                                                                       \
	"  }\n"                                                                                    \
	"}\n"

/* The instance, or NULL where there will be no profile. */
static struct andiron *profile_itself(const char *url)
{
	struct andiron_embed how = {.size = sizeof(how)};
	struct andiron *a = NULL;
	char text[1024], *why = NULL;
	int n = snprintf(text, sizeof(text), CONFIGURATION, url);

	how.plugin_dirs = getenv("PLUGIN_DIRS"); /* both are for a build that is not installed */
	how.worker = getenv("WORKER");
	if (n < (int)sizeof(text) && andiron_open(&how, &a, &why) == 0 &&
	    andiron_load(a, "itself", text, (uint64_t)n, &why) == 0 && andiron_start(a, &why) == 0)
		return a;
	fprintf(stderr, "no profile: %s\n", why ? why : "out of memory");
	andiron_text_free(why);
	andiron_close(a);
	return NULL;
}

/* What the program is for. */
static __attribute__((noinline)) double work(int64_t seconds)
{
	time_t end = time(NULL) + seconds;
	double sum = 0;

	for (uint64_t i = 1; i % 4096 != 0 || time(NULL) < end; i++)
		sum += 1.0 / (double)i;
	return sum;
}

int main(int argc, char **argv)
{
	struct andiron *a;

	if (argc != 3) {
		fprintf(stderr, "usage: itself SECONDS URL\n");
		return 2;
	}
	a = profile_itself(argv[2]);
	printf("%f\n", work(strtol(argv[1], NULL, 10)));
	if (a)
		andiron_stop(a, INT64_C(10000000000), NULL); /* what is not sent yet, is now */
	andiron_close(a);
	return 0;
}
