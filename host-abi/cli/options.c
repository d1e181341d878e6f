/* SPDX-License-Identifier: Apache-2.0 */
/* See options.h. getopt_long parses; our messages replace its own, to suggest the nearest name. */
#include "cli/options.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/str.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>

#define MAX_FLAGS    64
#define FIRST_ID     256 /* getopt's value of flag i is FIRST_ID + i, clear of letters */
#define HELP_ID      (FIRST_ID + MAX_FLAGS)
#define VERSION_ID   (HELP_ID + 1)
#define HELP_COLUMNS 80
#define HELP_INDENT  29 /* where the texts of options begin */
#define NEAR         3u

/* The command's flags as getopt wants them. */
struct walk {
	const struct command *command;
	struct option longs[MAX_FLAGS + 3];
	char shorts[2 * MAX_FLAGS + 8];
	size_t n_flags;
};

const struct flag options_common[] = {
	{"help", 'h', FLAG_BOOL, 0, NULL, "print this text"},
	{"version", 0, FLAG_BOOL, 0, NULL, "print the version"},
	{0},
};

static int argument_of(enum flag_kind kind)
{
	if (kind == FLAG_BOOL)
		return no_argument;
	return kind == FLAG_NOTED_BOOL ? optional_argument : required_argument;
}

static void prepare(struct walk *w, const struct command *command)
{
	size_t n = 0, s = 0;

	*w = (struct walk){.command = command};
	if (!command->mixed)
		w->shorts[s++] = '+';
	w->shorts[s++] = ':';
	w->shorts[s++] = 'h';
	for (const struct flag *f = command->flags; f && f->name; f++, n++) {
		check(n < MAX_FLAGS && (!f->help || f->kind != FLAG_BOOL || !f->word));
		w->longs[n] =
			(struct option){f->name, argument_of(f->kind), NULL, FIRST_ID + (int)n};
		if (!f->letter)
			continue;
		w->shorts[s++] = f->letter;
		if (f->kind != FLAG_BOOL)
			w->shorts[s++] = ':';
	}
	w->longs[n] = (struct option){"help", no_argument, NULL, HELP_ID};
	w->longs[n + 1] = (struct option){"version", no_argument, NULL, VERSION_ID};
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
	const char *names[MAX_FLAGS + 2];
	char word[64];
	size_t length = strcspn(given, "=");
	const char *nearest;

	snprintf(word, sizeof(word), "%.*s", (int)length, given + strspn(given, "-"));
	word[strcspn(word, "=")] = '\0';
	for (size_t i = 0; i < w->n_flags + 2; i++)
		names[i] = w->longs[i].name;
	nearest = options_nearest(word, names, w->n_flags + 2);
	if (nearest)
		return options_wrong(w->command, "there is no option %.*s; did you mean --%s?",
				     (int)length, given, nearest);
	return options_wrong(w->command, "there is no option %.*s", (int)length, given);
}

/* --- Values --- */

static int set_number(const struct command *command, const struct flag *f, const char *text,
		      uint64_t *ret)
{
	uint64_t value;

	if (!str_u64(str_of(text), &value) || value < (uint64_t)f->min ||
	    (f->max && value > (uint64_t)f->max))
		return options_wrong(command,
				     "--%s takes a whole number from %lld to %lld, not \"%s\"",
				     f->name, (long long)f->min,
				     (long long)(f->max ? f->max : INT64_MAX), text);
	*ret = value;
	return OPTIONS_DONE;
}

/* Plain seconds are what people type. */
static int set_duration(const struct command *command, const struct flag *f, const char *text,
			int64_t *ret)
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
	*ret = value;
	return OPTIONS_DONE;
}

static int set_text(const struct command *command, const struct flag *f, const char *text,
		    const char **ret)
{
	const char *const *choice = f->choices;

	while (choice && *choice && strcmp(*choice, text) != 0)
		choice++;
	if (choice && !*choice) {
		char list[128] = "";

		for (choice = f->choices; *choice; choice++)
			snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
				 choice == f->choices ? ""
				 : choice[1]          ? ", "
						      : " or ",
				 *choice);
		return options_wrong(command, "--%s is %s, not \"%s\"", f->name, list, text);
	}
	*ret = text;
	return OPTIONS_DONE;
}

static int add(struct texts *texts, const char *text)
{
	if (vec_push(texts, text))
		return OPTIONS_DONE;
	fprintf(stderr, "andiron: out of memory\n");
	return EXIT_FAILED;
}

/* A switch as Go's flags have them. */
static int note_switch(const struct command *command, const struct flag *f, const char *text,
		       struct texts *noted)
{
	static const char *const yes[] = {"1", "t", "T", "true", "TRUE", "True"};
	static const char *const no[] = {"0", "f", "F", "false", "FALSE", "False"};

	if (!text)
		return add(noted, f->name);
	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		if (strcmp(text, yes[i]) == 0)
			return add(noted, f->name);
		if (strcmp(text, no[i]) == 0)
			return OPTIONS_DONE;
	}
	return options_wrong(command, "--%s is true or false, not \"%s\"", f->name, text);
}

static int set(const struct command *command, const struct flag *f, void *values, char *argument)
{
	void *value = (char *)values + f->at;
	const char *ignored;
	int code;

	switch (f->kind) {
	case FLAG_BOOL:
		*(bool *)value = true;
		return OPTIONS_DONE;
	case FLAG_TEXT:
		return set_text(command, f, argument, value);
	case FLAG_NUMBER:
		return set_number(command, f, argument, value);
	case FLAG_DURATION:
		return set_duration(command, f, argument, value);
	case FLAG_TEXTS:
		return add(value, argument);
	case FLAG_NOTED_BOOL:
		return note_switch(command, f, argument, value);
	case FLAG_NOTED:
		break;
	}
	code = set_text(command, f, argument, &ignored);
	return code == OPTIONS_DONE ? add(value, f->name) : code;
}

static const struct flag *flag_of(const struct walk *w, int id)
{
	for (size_t i = 0; i < w->n_flags; i++)
		if (id == FIRST_ID + (int)i || (id < FIRST_ID && w->command->flags[i].letter == id))
			return &w->command->flags[i];
	return NULL;
}

/* The rest of the line may be wrong: then help is what its author needs. */
static bool is_asked(int argc, char **argv, const char *word)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], word) == 0)
			return true;
	return false;
}

int options_parse(const struct command *command, void *values, int argc, char **argv,
		  int *ret_first)
{
	bool help = is_asked(argc, argv, "--help") || is_asked(argc, argv, "-h");
	bool version = is_asked(argc, argv, "--version");
	struct walk w;
	int id = -1;

	prepare(&w, command);
	opterr = 0;
	optind = 0; /* glibc: start anew, and look at shorts[0] */
	while (!help && !version && (id = getopt_long(argc, argv, w.shorts, w.longs, NULL)) != -1) {
		const struct flag *f = flag_of(&w, id);
		int r;

		help = id == 'h' || id == HELP_ID;
		version = id == VERSION_ID;
		if (help || version)
			break;
		if (id == ':')
			return options_wrong(command, "%s needs a value", argv[optind - 1]);
		if (!f)
			return unknown(&w, argv[optind - 1]);
		r = set(command, f, values, optarg);
		if (r != OPTIONS_DONE)
			return r;
	}
	if (help)
		options_help(command);
	else if (version)
		options_version();
	*ret_first = optind;
	return help || version ? EXIT_OK : OPTIONS_DONE;
}

/* --- Help --- */

void options_version(void)
{
	printf("andiron %s (plugin ABI 1)\n", ANDIRON_VERSION);
}

/* Of n bytes of UTF-8 without combining characters. */
static size_t columns(const char *text, size_t n)
{
	size_t width = 0;

	for (size_t i = 0; i < n; i++)
		width += ((unsigned char)text[i] & 0xc0) != 0x80;
	return width;
}

/* Prints a text that begins at column `at`; further lines begin at column `indent`. */
static void print_wrapped(const char *text, size_t at, size_t indent)
{
	while (*text) {
		size_t n = strcspn(text, " \n"), width = columns(text, n);

		if (at > indent && at + 1 + width > HELP_COLUMNS) {
			printf("\n%*s", (int)indent, "");
			at = indent;
		}
		printf("%s%.*s", at > indent ? " " : "", (int)n, text);
		at += width + (at > indent);
		text += n;
		if (*text == '\n') {
			printf("\n%*s", (int)indent, "");
			at = indent;
		}
		text += *text != '\0';
	}
	putchar('\n');
}

static void print_flag(const struct flag *f)
{
	char left[80];
	int n = snprintf(left, sizeof(left), "  %c%c%c --%s%s%s", f->letter ? '-' : ' ',
			 f->letter ? f->letter : ' ', f->letter ? ',' : ' ', f->name,
			 f->word ? " " : "", f->word ? f->word : "");
	size_t width = columns(left, (size_t)n);

	check(n > 0 && n < (int)sizeof(left));
	if (width < HELP_INDENT - 1)
		printf("%s%*s", left, HELP_INDENT - (int)width, "");
	else
		printf("%s\n%*s", left, HELP_INDENT, "");
	print_wrapped(f->help, HELP_INDENT, HELP_INDENT);
}

void options_help(const struct command *command)
{
	printf("usage: andiron %s%s%s\n\n", command->verb, *command->usage ? " " : "",
	       command->usage);
	print_wrapped(command->summary, 0, 0);
	printf("\noptions:\n");
	for (const struct flag *f = command->flags; f && f->name; f++)
		if (f->help)
			print_flag(f);
	for (const struct flag *f = options_common; f->name; f++)
		print_flag(f);
	if (command->examples)
		printf("\nexamples:\n");
	for (struct str rest = str_of(command->examples); rest.n > 0;) {
		struct str line = str_cut(&rest, '\n');

		printf("  %.*s\n", STR_FMT(line));
	}
}
