/* SPDX-License-Identifier: Apache-2.0 */
/* Walks recordings again, and forged ones:
 *
 *   replay FOLDER COUNT [ROUNDS]
 *
 * There are at least COUNT recordings, and each gives the stack that was found, or is given up as
 * it was, by names and lines. With stale return addresses on the stack or in registers it gives the
 * same stack, or the innermost frames of it and a mark (return-addresses.h). With another class at
 * the addresses of one whose names are known, it gives the other one's. Then it is walked ROUNDS
 * times with bytes changed, which may give anything, and must end. */
#include <dirent.h>
#include <stdio.h>

#include "native-walker.h"

#include "recording.h"

static struct recording recording;
static struct jvm_process process;
static char expected[RECORDING_TEXT + 1];

#define LAID 4

/* What lies over the recording's memory: words that are stale, and the code that they lead to. */
static struct laid {
	uint64_t at;
	uint8_t bytes[16];
	uint32_t n;
} laid[LAID];
static uint32_t n_laid;

static int memory_at(void *to, uint32_t n, uint64_t address)
{
	int ret = recording_get(&recording, to, n, address);

	for (uint32_t i = 0; i < n_laid; i++) {
		const struct laid *l = &laid[i];

		if (ret != 0 && address >= l->at && address - l->at <= l->n &&
		    n <= l->n - (address - l->at))
			ret = 0; /* all of it */
		for (uint32_t k = 0; k < l->n && ret == 0; k++)
			if (l->at + k - address < n)
				((uint8_t *)to)[l->at + k - address] = l->bytes[k];
	}
	return ret;
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

static void walk_begin(void)
{
	struct andiron_walk *w = &native_walk;

	memset(w, 0, sizeof(*w));
	w->version = ANDIRON_WALK_VERSION;
	w->pc = recording.head.pc;
	w->exact = recording.head.exact;
	w->known = recording.head.known;
	memcpy(w->regs, recording.head.regs, sizeof(w->regs));
}

static void walk(const struct jvm_process *of)
{
	kept_clear();
	walk_begin();
	walk_all(of);
}

/* The stack that was walked, as text. */
static char *found(void)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		abort();
	walk_text(f);
	fclose(f);
	return text;
}

static int same(const char *name)
{
	char *text = found();
	int ret = native_walk.end == recording.head.end && strcmp(text, expected) == 0;

	if (!ret)
		printf("# %s: end %u, not %u\n# found\n%s# not\n%s", name, native_walk.end,
		       recording.head.end, text, expected);
	free(text);
	return ret;
}

/* The class's name in the recording, `n` bytes as they are printed. */
static uint8_t *class_name(const char *printed, size_t n)
{
	for (uint32_t i = 0; i < recording.head.n_ranges; i++) {
		uint8_t *bytes = recording.bytes + recording.ranges[i].at;
		size_t k = 0;

		while (k < n && bytes[k] == (printed[k] == '.' ? '/' : printed[k]))
			k++;
		if (recording.ranges[i].n == n && k == n)
			return bytes;
	}
	return NULL;
}

static uint32_t n_renamed, n_redefined;

/* A class that is unloaded leaves all of its addresses to the next one of its shape. Here that is
 * the class of the innermost interpreted frame, with another last character. */
static int renamed_wrong(const char *name)
{
	char *end = strstr(expected, ":i\n"), *line = end, *dot = NULL, *text;
	uint8_t *bytes;
	size_t n;
	int wrong = 0;

	while (line && line > expected && line[-1] != '\n')
		line--;
	for (char *p = line; p && *p != ':'; p++)
		dot = *p == '.' ? p : dot;
	n = dot ? (size_t)(dot - line) : 0;
	bytes = n > 0 ? class_name(line, n) : NULL;
	if (!bytes)
		return 0;
	n_renamed++;
	walk(&process);
	bytes[n - 1] ^= 1;
	walk_begin();
	walk_all(&process);
	bytes[n - 1] ^= 1;
	text = found();
	for (char *p = text, *next; *p && (next = strchr(p, '\n')) != NULL; p = next + 1)
		wrong |= next[-1] == 'i' && strncmp(p, line, n + 1) == 0;
	if (wrong)
		printf("# %s: %.*s has the name of the class before\n", name, (int)n, line);
	free(text);
	return wrong;
}

/* So does a class that is redefined, with other lines; here of the outermost method, which is
 * interpreted. */
static int redefined_wrong(const char *name)
{
	size_t n = strlen(expected);
	uint64_t id;

	if (n < 3 || strcmp(expected + n - 3, ":i\n") != 0)
		return 0;
	walk(&process);
	id = native_state.id;
	laid[0] = (struct laid){native_state.bytecode + native_state.bytecode_size, {0}, 1};
	if (memory_at(laid[0].bytes, 1, laid[0].at) != 0)
		return 0;
	n_redefined++;
	laid[0].bytes[0] ^= 8;
	n_laid = 1;
	walk_begin();
	walk_all(&process);
	n_laid = 0;
	if (native_state.id != id)
		return 0;
	printf("# %s: the outermost method has the lines of the one before\n", name);
	return 1;
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

#include "return-addresses.h"

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
		wrong += stale_wrong(entry->d_name);
		wrong += renamed_wrong(entry->d_name);
		wrong += redefined_wrong(entry->d_name);
		for (unsigned i = 0; i < rounds; i++)
			forge();
	}
	if (folder)
		closedir(folder);
	printf("# %u recordings, %u wrong, %u forgeries of each\n", n, wrong, rounds);
	printf("# %u walks past stale words: %u whole, %u marked\n", stale.walks, stale.whole,
	       stale.walks - stale.whole);
	printf("# %u walks of a class in another's place, %u of one redefined\n", n_renamed,
	       n_redefined);
	return n < count || n_renamed == 0 || n_redefined == 0 || wrong != 0;
}
