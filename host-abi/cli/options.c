/* SPDX-License-Identifier: Apache-2.0 */
/* See options.h. getopt_long does the walking; its messages are replaced by
 * ones that suggest. */
#include "cli/options.h"

#include "base/clock.h"
#include "base/str.h"
#include "cli/cli.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>

#define MAX_FLAGS 64
#define FIRST_ID 256 /* getopt's value of flag i is FIRST_ID + i, clear of letters */
#define HELP_ID (FIRST_ID + MAX_FLAGS)
#define NEAR 3u

/* The command's flags as getopt wants them. */
struct walk {
	const struct command *command;
	struct option longs[MAX_FLAGS + 2];
	char shorts[2 * MAX_FLAGS + 8];
	size_t n_flags;
};

static int argument_of(enum flag_kind kind)
{
	if (kind == FLAG_BOOL)
		return no_argument;
	return kind == FLAG_NOTED_BOOL ? optional_argument : required_argument;
}

static void prepare(struct walk *w, const struct command *command, bool mixed)
{
	size_t n = 0, s = 0;

	*w = (struct walk){.command = command};
	if (!mixed)
		w->shorts[s++] = '+';
	w->shorts[s++] = ':';
	w->shorts[s++] = 'h';
	for (const struct flag *f = command->flags; f && f->name && n < MAX_FLAGS; f++, n++) {
		w->longs[n] =
			(struct option){f->name, argument_of(f->kind), NULL, FIRST_ID + (int)n};
		if (!f->letter)
			continue;
		w->shorts[s++] = f->letter;
		if (f->kind != FLAG_BOOL)
			w->shorts[s++] = ':';
	}
	w->longs[n] = (struct option){"help", no_argument, NULL, HELP_ID};
	w->n_flags = n;
}

const char *options_nearest(const char *word, const char *const *words, size_t n)
{
	unsigned int nearest = NEAR;
	const char *found = NULL;

	for (size_t i = 0; i < n; i++) {
		unsigned int d = str_distance(str_of(word), str_of(words[i]), NEAR);

		if (d < nearest) {
			nearest = d;
			found = words[i];
		}
	}
	return found;
}

int options_wrong(const struct command *command, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "andiron %s: ", command->verb);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n  usage: andiron %s %s\n  more:  andiron %s --help\n", command->verb,
		command->usage, command->verb);
	return EXIT_USAGE;
}

static int unknown(const struct walk *w, const char *given)
{
	const char *names[MAX_FLAGS];
	char word[64];
	size_t length = strcspn(given, "=");
	const char *nearest;

	snprintf(word, sizeof(word), "%.*s", (int)length, given + strspn(given, "-"));
	word[strcspn(word, "=")] = '\0';
	for (size_t i = 0; i < w->n_flags; i++)
		names[i] = w->longs[i].name;
	nearest = options_nearest(word, names, w->n_flags);
	if (nearest)
		return options_wrong(w->command, "there is no option %.*s; did you mean --%s?",
				     (int)length, given, nearest);
	return options_wrong(w->command, "there is no option %.*s", (int)length, given);
}

/* --- Values --- */

static int set_number(const struct command *command, const struct flag *f, const char *text)
{
	uint64_t value;

	if (!str_u64(str_of(text), &value) || value < (uint64_t)f->min ||
	    (f->max && value > (uint64_t)f->max))
		return options_wrong(
			command, "--%s takes a whole number from %lld to %lld, not \"%s\"", f->name,
			(long long)f->min, (long long)(f->max ? f->max : INT64_MAX), text);
	*(uint64_t *)f->value = value;
	return OPTIONS_DONE;
}

/* Plain seconds are what people type. */
static int set_duration(const struct command *command, const struct flag *f, const char *text)
{
	uint64_t seconds;
	int64_t value;

	if (str_u64(str_of(text), &seconds) && seconds < INT64_MAX / NS_PER_SEC)
		value = (int64_t)seconds * NS_PER_SEC;
	else if (!duration_parse(str_of(text), &value))
		value = -1;
	if (value < f->min || (f->max && value > f->max)) {
		char least[32];

		return options_wrong(
			command,
			"--%s takes a duration such as 10s or 1m30s, at least %s, not \"%s\"",
			f->name, duration_format(f->min, least, sizeof(least)), text);
	}
	*(int64_t *)f->value = value;
	return OPTIONS_DONE;
}

static bool add(void *value, const char *text)
{
	struct texts *texts = value;

	return vec_push(texts, text);
}

static int set(const struct command *command, const struct flag *f, char *argument)
{
	bool fits = true;

	switch (f->kind) {
	case FLAG_BOOL:
		*(bool *)f->value = true;
		break;
	case FLAG_TEXT:
		*(const char **)f->value = argument;
		break;
	case FLAG_TEXTS:
		fits = add(f->value, argument);
		break;
	case FLAG_NOTED:
	case FLAG_NOTED_BOOL:
		fits = add(f->value, f->name);
		break;
	case FLAG_NUMBER:
		return set_number(command, f, argument);
	case FLAG_DURATION:
		return set_duration(command, f, argument);
	}
	if (fits)
		return OPTIONS_DONE;
	fprintf(stderr, "andiron: out of memory\n");
	return EXIT_FAILED;
}

static const struct flag *flag_of(const struct walk *w, int id)
{
	for (size_t i = 0; i < w->n_flags; i++)
		if (id == FIRST_ID + (int)i || (id < FIRST_ID && w->command->flags[i].letter == id))
			return &w->command->flags[i];
	return NULL;
}

int options_parse(const struct command *command, int argc, char **argv, bool mixed, int *ret_first)
{
	struct walk w;
	int id;

	prepare(&w, command, mixed);
	opterr = 0;
	optind = 0; /* glibc: start anew, and look at shorts[0] */
	while ((id = getopt_long(argc, argv, w.shorts, w.longs, NULL)) != -1) {
		const struct flag *f;
		int r;

		if (id == 'h' || id == HELP_ID) {
			options_help(command);
			return EXIT_OK;
		}
		if (id == ':')
			return options_wrong(command, "%s needs a value", argv[optind - 1]);
		f = flag_of(&w, id);
		if (!f)
			return unknown(&w, argv[optind - 1]);
		r = set(command, f, optarg);
		if (r != OPTIONS_DONE)
			return r;
	}
	*ret_first = optind;
	return OPTIONS_DONE;
}

/* --- Help --- */

static void print_flag(const struct flag *f)
{
	char left[64];

	snprintf(left, sizeof(left), "%c%c%c --%s%s%s", f->letter ? '-' : ' ',
		 f->letter ? f->letter : ' ', f->letter ? ',' : ' ', f->name, f->word ? " " : "",
		 f->word ? f->word : "");
	if (strlen(left) > 26)
		printf("  %s\n  %-26s %s\n", left, "", f->help);
	else
		printf("  %-26s %s\n", left, f->help);
}

void options_help(const struct command *command)
{
	printf("usage: andiron %s %s\n\n%s\n\n", command->verb, command->usage, command->summary);
	printf("options:\n");
	for (const struct flag *f = command->flags; f && f->name; f++)
		if (f->help)
			print_flag(f);
	print_flag(&(struct flag){.name = "help", .letter = 'h', .help = "this text"});
	if (command->examples)
		printf("\nexamples:\n%s", command->examples);
}
