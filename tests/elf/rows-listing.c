/* SPDX-License-Identifier: Apache-2.0 */
/* readelf's output, taken apart. Contract in rows.h. */
#include "rows.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const x86_names[] = {
	"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
	"r9",  "r10", "r11", "r12", "r13", "r14", "r15", "rip",
};

const char *register_name(uint16_t machine, uint64_t n)
{
	static char text[2][24];
	static unsigned int turn;
	char *out = text[turn++ % 2];

	if (machine == EM_X86_64 && n < 17)
		return x86_names[n];
	if (machine == EM_X86_64 && n < 33)
		snprintf(out, sizeof(text[0]), "xmm%u", (unsigned int)n - 17);
	else if (machine == EM_X86_64 && n >= 118 && n < 126)
		snprintf(out, sizeof(text[0]), "k%u", (unsigned int)n - 118);
	else if (machine == EM_AARCH64 && n < 31)
		snprintf(out, sizeof(text[0]), "x%u", (unsigned int)n);
	else if (machine == EM_AARCH64 && n == 31)
		snprintf(out, sizeof(text[0]), "sp");
	else if (machine == EM_AARCH64 && n >= 64 && n < 96)
		snprintf(out, sizeof(text[0]), "v%u", (unsigned int)n - 64);
	else
		snprintf(out, sizeof(text[0]), "r%u", (unsigned int)n);
	return out;
}

bool verdict_differs(struct verdict *v)
{
	return v->differences++ < PRINT_MAX;
}

/* The next line, without white space at its end; NULL at the end. */
static char *next_line(struct listing *l)
{
	ssize_t n;

	if (l->any) {
		l->any = false;
		return l->line;
	}
	n = getline(&l->line, &l->capacity, l->in);
	if (n < 0)
		return NULL;
	while (n && isspace((unsigned char)l->line[n - 1]))
		l->line[--n] = '\0';
	return l->line;
}

/* Heads begin in the first column with an offset and a blank behind it; rows are 16 digits long. */
static bool is_head(const char *line)
{
	return strspn(line, "0123456789abcdef") == 8 && line[8] == ' ';
}

/* Moves to the next record's head; false: no more. */
static bool next_record(struct listing *l, uint64_t *ret_offset, bool *ret_fde)
{
	static const char contents[] = "Contents of the ";
	char *line;

	while ((line = next_line(l))) {
		if (strncmp(line, contents, sizeof(contents) - 1) == 0)
			snprintf(l->section, sizeof(l->section), "%.*s",
				 (int)strcspn(line + sizeof(contents) - 1, " "),
				 line + sizeof(contents) - 1);
		if (!is_head(line) || strstr(line, "ZERO terminator"))
			continue;
		*ret_offset = strtoull(line, NULL, 16);
		*ret_fde = strstr(line, " FDE ") != NULL;
		return true;
	}
	return false;
}

char *listing_content(struct listing *l)
{
	char *line = next_line(l);

	if (line && *line && !is_head(line))
		return line;
	l->any = line != NULL;
	if (line && !*line)
		l->any = false;
	return NULL;
}

static int open_named(struct cfi_section *section, const struct elf_file *f, const char *name)
{
	const Elf64_Shdr *header = elf_file_section(f, name);

	cfi_section_close(section);
	return header ? cfi_section_open(section, f, header) : -ENOENT;
}

/* 0: we read it as what readelf says it is. */
static int read_record(struct cfi_section *s, uint64_t offset, bool is_fde, struct cfi_fde *fde)
{
	int r;

	*fde = (struct cfi_fde){.next = offset};
	r = cfi_section_next(s, fde);
	if (r == 0 && !is_fde)
		return cfi_section_cie(s, offset, &fde->cie);
	if (r == 1 && is_fde)
		return 0;
	return r < 0 ? r : -EBADMSG;
}

int listing_judge(struct elf_file *f, FILE *in,
		  void (*judge)(void *context, struct verdict *v, struct listing *l,
				struct record *record),
		  void *context, struct verdict *v)
{
	struct cfi_section section = CFI_SECTION_NULL;
	struct listing l = {.in = in};
	char name[sizeof(l.section)] = "";
	uint64_t offset;
	bool is_fde;
	int r = 0;

	while (r == 0 && next_record(&l, &offset, &is_fde)) {
		struct cfi_fde fde;
		struct record record = {.machine = f->machine};

		if (strcmp(l.section, name) != 0)
			r = open_named(&section, f, memcpy(name, l.section, sizeof(name)));
		if (r < 0)
			break;
		if (read_record(&section, offset, is_fde, &fde) == 0) {
			record.cie = fde.cie;
			record.fde = is_fde ? &fde : NULL;
			judge(context, v, &l, &record);
		} else if (verdict_differs(v)) {
			printf("# the record at %#" PRIx64 " of %s is none for us\n", offset, name);
		}
	}
	cfi_section_close(&section);
	free(l.line);
	return r;
}
