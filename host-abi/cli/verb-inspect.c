/* SPDX-License-Identifier: Apache-2.0 */
/* `andiron inspect FILE`: what a plugin offers, or what an ELF file holds that
 * profiles need. Only what says that it is a plugin is loaded, since loading
 * runs a library's constructors. */
#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/describe.h"
#include "elf/ids.h"
#include "elf/symbols.h"
#include "host/registry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_NAMES_BYTES (64u << 20)
#define MAX_FUNCTIONS   (16u << 20)

/* Sections whose presence decides what a profile of the file can show. */
static const struct {
	const char *name, *means;
} sections[] = {
	{".symtab", "names of all functions"},
	{".dynsym", "names of exported functions"},
	{".gnu_debugdata", "compressed symbol table"},
	{".gnu_debuglink", "name of a separate debug file"},
	{".gnu_debugaltlink", "name of a shared debug file"},
	{".debug_info", "inlined functions"},
	{".debug_line", "source lines"},
	{".eh_frame", "unwinding without frame pointers"},
	{".debug_frame", "unwinding without frame pointers"},
	{".gopclntab", "Go's functions and lines"},
};

static bool is_named_like_plugin(const char *path)
{
	struct str name = str_of(path);
	size_t slash = str_rfind(name, '/');

	name = slash < name.n ? str_skip(name, slash + 1) : name;
	return str_starts(name, STR("andiron-")) && str_ends(name, STR(".so"));
}

static bool exports_entry(struct elf_file *f)
{
	const Elf64_Shdr *names;
	struct buf text = BUF_NULL;
	bool found = false;

	if (elf_file_load_sections(f, NULL) < 0)
		return false;
	names = elf_file_section(f, ".dynstr");
	if (names && elf_file_read_section(f, names, MAX_NAMES_BYTES, &text) == 0)
		found = str_search(buf_str(&text), STR("andiron_plugin_v")) < text.n;
	buf_free(&text);
	return found;
}

static const char *or_none(const char *text)
{
	return *text ? text : "none";
}

static void print_symbols(struct elf_file *f)
{
	static const char *const sources[] = {"nowhere", ".symtab", ".dynsym"};
	struct elf_symbols symbols = ELF_SYMBOLS_NULL;
	struct error err = ERROR_NULL;

	if (elf_symbols_load(&symbols, f, MAX_FUNCTIONS, &err) < 0)
		printf("functions       unknown: %s\n", err.text);
	else
		printf("functions       %zu from %s\n", symbols.n, sources[symbols.source]);
	elf_symbols_free(&symbols);
}

static int print_elf(struct elf_file *f, const char *path, struct error *err)
{
	struct elf_ids ids;
	int r = elf_ids_read(f, &ids);

	if (r == 0)
		r = elf_file_load_sections(f, err);
	if (r < 0)
		return err->code ? r : error_errno(err, r, "cannot be read");
	printf("%s\n  GNU build id    %s\n  Go build id     %s\n  file id         %s\n  ", path,
	       or_none(ids.gnu_build_id), or_none(ids.go_build_id), ids.file_id);
	print_symbols(f);
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++)
		printf("  %-18s %-4s %s\n", sections[i].name,
		       elf_file_section(f, sections[i].name) ? "yes" : "no", sections[i].means);
	return 0;
}

static int inspect_plugin(const char *path, struct error *err)
{
	const struct andiron_plugin *plugin;
	int r = registry_probe(path, err);

	if (r == 0)
		r = registry_load(path, &plugin, NULL, err);
	if (r < 0)
		return error_wrap(err, r, "refused as a plugin");
	describe_plugin(plugin, path, stdout);
	return 0;
}

static int inspect(const char *path, struct error *err)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct elf_file f = ELF_FILE_NULL;
	bool is_plugin = is_named_like_plugin(path);
	int r;

	if (fd < 0)
		return error_errno(err, -errno, "cannot be opened");
	if (is_plugin)
		return inspect_plugin(path, err);
	r = elf_file_open(&f, fd, err);
	if (r == 0)
		r = exports_entry(&f) ? inspect_plugin(path, err) : print_elf(&f, path, err);
	elf_file_close(&f);
	return r;
}

static int run(int argc, char **argv)
{
	struct error err = ERROR_NULL;
	char *path;
	int first, code = options_parse(&verb_inspect, NULL, argc, argv, &first);

	if (code == OPTIONS_DONE && argc - first != 1)
		code = options_wrong(&verb_inspect, "which file?");
	if (code != OPTIONS_DONE)
		return code;
	path = realpath(argv[first], NULL);
	if (!path)
		error_errno(&err, -errno, "cannot be opened");
	else
		inspect(path, &err);
	free(path);
	if (err.code)
		fprintf(stderr, "andiron inspect: %s: %s\n", argv[first], err.text);
	return err.code ? EXIT_FAILED : EXIT_OK;
}

const struct command verb_inspect = {
	.verb = "inspect",
	.run = run,
	.usage = "FILE",
	.brief = "show what a plugin or an ELF file offers",
	.summary = "Of a plugin file it shows the components with all their options, or why the "
		   "plugin is refused. Of any other ELF file it shows the ids, and what the file "
		   "holds that gives names to frames.",
	.mixed = true,
};
