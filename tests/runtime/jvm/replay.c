/* SPDX-License-Identifier: Apache-2.0 */
/* Walks recordings again, and forged ones:
 *
 *   replay FOLDER COUNT [ROUNDS]
 *
 * There are at least COUNT recordings, and each gives the stack that was found, or is given up as
 * it was, by names and lines. Then it is walked ROUNDS times with bytes
 * changed, which may give anything, and must end. */
#include <dirent.h>
#include <stdio.h>

#include "native-walker.h"

#include "recording.h"

static struct recording recording;
static struct jvm_process process;
static char expected[RECORDING_TEXT + 1];

static int memory_at(void *to, uint32_t n, uint64_t address)
{
	return recording_get(&recording, to, n, address);
}

static int recording_read(const char *path)
{
	struct recording *r = &recording;
	FILE *f = fopen(path, "re");
	int ok;

	if (!f)
		return -1;
	ok = fread(&r->head, sizeof(r->head), 1, f) == 1 && r->head.magic == RECORDING_MAGIC &&
	     r->head.n_ranges <= RECORDING_RANGES && r->head.n_bytes <= RECORDING_BYTES &&
	     r->head.n_text <= RECORDING_TEXT && r->head.process_bytes == sizeof(process) &&
	     fread(&process, sizeof(process), 1, f) == 1 &&
	     fread(r->ranges, sizeof(*r->ranges), r->head.n_ranges, f) == r->head.n_ranges &&
	     fread(r->bytes, 1, r->head.n_bytes, f) == r->head.n_bytes &&
	     fread(expected, 1, r->head.n_text, f) == r->head.n_text;
	expected[ok ? r->head.n_text : 0] = 0;
	fclose(f);
	return ok ? 0 : -1;
}

static void walk(const struct jvm_process *of)
{
	struct andiron_walk *w = &native_walk;

	memset(w, 0, sizeof(*w));
	w->version = ANDIRON_WALK_VERSION;
	w->pc = recording.head.pc;
	w->exact = recording.head.exact;
	w->known = recording.head.known;
	memcpy(w->regs, recording.head.regs, sizeof(w->regs));
	kept_clear();
	walk_all(of);
}

static int same(const char *name)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	int ret;

	if (!f)
		return 0;
	walk_text(f);
	fclose(f);
	ret = native_walk.end == recording.head.end && strcmp(text, expected) == 0;
	if (!ret)
		printf("# %s: end %u, not %u\n# found\n%s# not\n%s", name, native_walk.end,
		       recording.head.end, text, expected);
	free(text);
	return ret;
}

static uint32_t noise_state = 12345;

static uint32_t noise(void)
{
	noise_state = noise_state * 1664525u + 1013904223u;
	return noise_state >> 8;
}

/* A recording with a few bytes changed: of memory, of registers, of what the plugin says. */
static void forge(void)
{
	static uint8_t kept_bytes[RECORDING_BYTES];
	struct recording_head head = recording.head;
	struct jvm_process forged = process;

	memcpy(kept_bytes, recording.bytes, recording.head.n_bytes);
	for (uint32_t i = noise() % 8; i > 0 && head.n_bytes > 0; i--)
		recording.bytes[noise() % head.n_bytes] = (uint8_t)noise();
	if (noise() % 4 == 0)
		recording.head.regs[noise() % 16] ^= 1ull << noise() % 48;
	if (noise() % 4 == 0)
		((uint8_t *)&forged)[noise() % sizeof(forged)] = (uint8_t)noise();
	if (noise() % 8 == 0)
		recording.head.pc += noise() % 64;
	walk(&forged);
	recording.head = head;
	memcpy(recording.bytes, kept_bytes, recording.head.n_bytes);
}

int main(int argc, char **argv)
{
	unsigned n = 0, wrong = 0, rounds = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
	unsigned count = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1;
	DIR *folder = argc > 1 ? opendir(argv[1]) : NULL;
	struct dirent *entry;

	while (folder && (entry = readdir(folder)) != NULL) {
		char path[1024];

		snprintf(path, sizeof(path), "%s/%s", argv[1], entry->d_name);
		if (!strstr(entry->d_name, ".walk"))
			continue;
		n++;
		if (recording_read(path) != 0) {
			printf("# %s cannot be read\n", path);
			wrong++;
			continue;
		}
		walk(&process);
		wrong += !same(entry->d_name);
		for (unsigned i = 0; i < rounds; i++)
			forge();
	}
	if (folder)
		closedir(folder);
	printf("# %u recordings, %u wrong, %u forgeries of each\n", n, wrong, rounds);
	return n < count || wrong != 0;
}
