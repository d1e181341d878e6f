/* SPDX-License-Identifier: Apache-2.0 */
/* What the plugins of runtimes read of files: symbols and relocations, call-frame information, an
 * interpreter of CPython, a V8. */
#include "fuzz.h"

#include "base/check.h"
#include "python/elf-frames.h"
#include "python/interpreter.h"
#include "v8/binary.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CFAS  64u
#define LARGE (9 << 20) /* no smaller file is looked at for a V8 */

static void use_address(const struct elf_file *f, uint64_t address)
{
	struct elf_cfa cfas[CFAS];
	struct elf_code code;
	size_t n = elf_cfas(f, address, cfas, CFAS);

	check(n <= CFAS);
	for (size_t i = 0; i < n; i++)
		check(cfas[i].from < cfas[i].to);
	if (elf_function(f, address, &code))
		check(code.from <= address && address < code.to);
	elf_relocated(f, address, &address);
}

static void use_elf(int fd)
{
	static const char *const begins[] = {"_Py", "v8", NULL};
	static struct elf_file f;
	struct elf_symbols symbols;
	struct elf_symbol symbol;
	const char *name;

	if (!elf_open(&f, fd))
		return;
	use_address(&f, f.head.e_entry);
	if (elf_dynamic_symbol(&f, "_PyEval_EvalFrameDefault", &symbol))
		use_address(&f, symbol.address);
	elf_section(&f, ".symtab");
	elf_names_have(&f, "_Py");
	if (!elf_symbols_open(&symbols, &f, begins))
		return;
	while (elf_symbols_next(&symbols, &name, &symbol))
		check(strlen(name) < ELF_FILE_NAME);
	elf_symbols_close(&symbols);
}

static void use_asyncio(int fd)
{
	struct tasks *t = tasks_read(fd);
	struct python_tasks k;

	if (t) {
		check(t->fields.task_span <= 256 && t->fields.task_name < t->fields.task_span);
		check(t->fields.task_is_set < t->fields.task_span);
		check(tasks_joined(t, t, &k));
	}
	free(t);
}

static void use_python(int fd)
{
	static struct interpreter p;

	use_asyncio(fd);
	interpreter_recognized(fd);
	if (!interpreter_read(fd, &p))
		return;
	check(p.n_codes > 0 && p.n_codes <= INTERPRETER_CODES);
	check(p.layout.n_bodies <= PYTHON_BODIES);
	check((p.layout.kind == PYTHON_UNKNOWN) == (p.why[0] != '\0'));
}

static void use_v8(int fd)
{
	struct v8_binary b;

	check(ftruncate(fd, LARGE) == 0);
	binary_is_v8(fd);
	if (binary_read(&b, fd) != 1)
		return;
	for (uint64_t at = 0; at < b.blob_bytes && at < 1u << 16; at += 64)
		binary_builtin(&b, at);
	binary_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	int fd = fuzz_file(bytes, n);

	use_elf(fd);
	use_python(fd);
	use_v8(fd);
	return 0;
}
