/* SPDX-License-Identifier: Apache-2.0 */
/* Native methods of Embedded: libandiron in a JVM's own process. The place in JNI's table of
 * functions is that of its specification, so that no header of a JDK is needed.
 *
 * The JVM starts threads and opens files as it likes, so what is compared is what only a library
 * could change, or could leave: handlers of signals, the mask, descriptors without a file, and
 * threads by name. */
#include <andiron/embed.h>

#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)

enum {
	NewStringUTF = 167,
	GetStringUTFChars = 169,
	ReleaseStringUTFChars = 170,
};

typedef void *const *const *Env;
typedef void *(*MakeString)(Env env, const char *text);
typedef const char *(*TextOf)(Env env, void *string, uint8_t *ret_copied);
typedef void (*ReleaseText)(Env env, void *string, const char *text);

struct process {
	sigset_t mask;
	struct sigaction actions[65];
	int anonymous, threads;
};

static struct andiron *running;
static struct process before;
static atomic_ullong samples;

void *Java_Embedded_begin(Env env, void *type, void *configuration);
void *Java_Embedded_end(Env env, void *type);

static int count_anonymous(void)
{
	DIR *dir = opendir("/proc/self/fd");
	char target[64];
	int n = 0;

	for (struct dirent *e; dir && (e = readdir(dir));) {
		ssize_t length = readlinkat(dirfd(dir), e->d_name, target, sizeof(target) - 1);

		target[length > 0 ? length : 0] = '\0';
		n += strncmp(target, "anon_inode:", 11) == 0;
	}
	if (dir)
		closedir(dir);
	return n;
}

static int count_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	int n = 0;

	for (struct dirent *e; dir && (e = readdir(dir));) {
		char path[300], name[16] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
		file = fopen(path, "re");
		n += file && fgets(name, sizeof(name), file) && strncmp(name, "andiron", 7) == 0;
		if (file)
			fclose(file);
	}
	if (dir)
		closedir(dir);
	return n;
}

static void look(struct process *p)
{
	memset(p, 0, sizeof(*p));
	pthread_sigmask(SIG_BLOCK, NULL, &p->mask);
	for (int i = 1; i < 65; i++)
		sigaction(i, NULL, &p->actions[i]);
	p->anonymous = count_anonymous();
	p->threads = count_threads();
}

/* What differs, or NULL. */
static const char *difference(const struct process *a, const struct process *b)
{
	if (memcmp(&a->mask, &b->mask, sizeof(a->mask)) != 0)
		return "the signal mask differs";
	for (int i = 1; i < 65; i++) {
		if (a->actions[i].sa_handler != b->actions[i].sa_handler ||
		    a->actions[i].sa_flags != b->actions[i].sa_flags)
			return "a handler of a signal differs";
	}
	if (a->anonymous != b->anonymous)
		return "descriptors are left";
	return a->threads != b->threads ? "threads are left" : NULL;
}

static int32_t count(void *context, const struct andiron_profile *profile)
{
	(void)context;
	samples += profile->samples;
	return 0;
}

static void *string(Env env, const char *text)
{
	return ((MakeString)(*env)[NewStringUTF])(env, text);
}

void *Java_Embedded_begin(Env env, void *type, void *configuration)
{
	const struct andiron_embed how = {
		.size = sizeof(how),
		.plugin_dirs = getenv("ANDIRON_PLUGIN_PATH"),
		.worker = getenv("ANDIRON"),
	};
	TextOf get = (TextOf)(*env)[GetStringUTFChars];
	ReleaseText release = (ReleaseText)(*env)[ReleaseStringUTFChars];
	const char *path = get(env, configuration, NULL);
	void *ret = NULL;
	char *why = NULL;

	(void)type;
	look(&before);
	samples = 0;
	if (andiron_open(&how, &running, &why) < 0 ||
	    andiron_on_profiles(running, "mine", ANDIRON_FORM_PPROF, count, NULL, &why) < 0 ||
	    andiron_load_file(running, path, &why) < 0 || andiron_start(running, &why) < 0)
		ret = string(env, why ? why : "out of memory");
	andiron_text_free(why);
	release(env, configuration, path);
	return ret;
}

void *Java_Embedded_end(Env env, void *type)
{
	struct process after;
	const char *differs;
	char text[256], *why = NULL;
	int stopped, closed;

	(void)type;
	stopped = andiron_stop(running, 30 * SECOND, &why);
	closed = andiron_close(running);
	look(&after);
	differs = difference(&before, &after);
	if (stopped < 0 || closed < 0)
		snprintf(text, sizeof(text), "stopped %d, closed %d: %s", stopped, closed,
			 why ? why : "out of memory");
	else
		snprintf(text, sizeof(text), "samples %llu, %s", samples,
			 differs ? differs : "the process is what it was");
	andiron_text_free(why);
	return string(env, text);
}
