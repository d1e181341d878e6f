/* SPDX-License-Identifier: Apache-2.0 */
/* What a V8 exports is looked up by the hash of its name, so a file of a hundred megabytes costs
 * milliseconds; only the names of builtins need a pass over all symbols. */
#include "v8/binary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime-kit/elf-file.h"
#include "v8/builtins.h"

#define SMALLEST   (8 << 20) /* no V8 is smaller */
#define NAMES      (1u << 20)
#define BLOB_LIMIT (64u << 20)
#define BYTECODES  512u

#define V8DBG     "v8dbg_"
#define COLLECTOR "PushAllRegistersAndIterateStack"
#define SIZES     "_ZN2v88internal11interpreter9Bytecodes14kBytecodeSizesE"

struct reading {
	struct elf_file *elf;
	struct v8_binary *b;
	uint64_t blob, blob_size_at, sizes, n_sizes;
	size_t n_names;
	bool full;
};

/* The value of a constant; false: it is not exported. */
static bool reading_constant(const struct reading *r, const char *name, int32_t *ret)
{
	char symbol[112];
	struct elf_symbol s;

	snprintf(symbol, sizeof(symbol), V8DBG "%s", name);
	return elf_dynamic_symbol(r->elf, symbol, &s) &&
	       elf_read_all(r->elf, s.address, ret, sizeof(*ret));
}

/* The first of several names that is exported. The last of them is NULL. */
static bool reading_any(const struct reading *r, const char *const *names, int32_t *ret)
{
	for (; *names; names++)
		if (reading_constant(r, *names, ret))
			return true;
	return false;
}

struct place {
	const char *const *names;
	size_t member;
	int32_t least, most; /* plausible */
	int32_t otherwise;   /* where it is not exported; -1: it must be */
};

#define NAMES_OF(...) ((const char *const[]){__VA_ARGS__, NULL})
#define IN_LAYOUT(m)  (offsetof(struct v8_binary, layout) + offsetof(struct v8_layout, m))
#define IN_BINARY(m)  offsetof(struct v8_binary, m)

/* Offsets of pointers are multiples of eight within an object of some size. What stands in place of
 * a constant that a version does not export is from V8's sources, in all its versions from 8.1 to
 * 14.6 if none is named:
 *
 *   function_data         src/objects/shared-function-info.tq: the first member
 *   id                    src/objects/script.tq: the eighth member
 *   off_fp_…              src/execution/frame-constants.h: InterpreterFrameConstants
 *   first_vars            src/objects/scope-info.tq: flags, parameter and local counts before it
 *   source_position_table src/objects/bytecode-array.tq: the fourth member
 *   data                  the same until 10: 54, behind five numbers (reading_derived)
 *   instruction_size      src/objects/code.h: Code::kInstructionSizeOffset from 10 on
 *   Deoptimization…       src/objects/code.h, from 12 on deoptimization-data.h: the order of
 *                         DEFINE_DEOPT_ELEMENT */
static const struct place places[] = {
	{NAMES_OF("class_JSFunction__shared__SharedFunctionInfo"), IN_LAYOUT(function_shared), 8,
	 64, -1},
	{NAMES_OF("class_SharedFunctionInfo__name_or_scope_info__Object",
		  "class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_",
		  "class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_"),
	 IN_LAYOUT(shared_name), 8, 56, -1},
	{NAMES_OF("class_SharedFunctionInfo__script_or_debug_info__HeapObject",
		  "class_SharedFunctionInfo__script__Tagged_HeapObject_",
		  "class_SharedFunctionInfo__raw_script__Tagged_Object_"),
	 IN_LAYOUT(shared_script), 8, 56, -1},
	{NAMES_OF("class_SharedFunctionInfo__length__uint16_t"), IN_LAYOUT(shared_counts), 8, 64,
	 -1},
	{NAMES_OF("class_SharedFunctionInfo__flags__int"), IN_LAYOUT(shared_flags), 8, 64, -1},
	{NAMES_OF("class_SharedFunctionInfo__function_data__Object"), IN_LAYOUT(shared_data), 8, 8,
	 8},
	{NAMES_OF("class_Script__id__SMI"), IN_LAYOUT(script_id), 64, 64, 64},
	{NAMES_OF("class_Script__wasm_managed_native_module__Object",
		  "class_Script__wasm_managed_native_module__Tagged_Object_"),
	 IN_BINARY(script_native), 64, 160, 0},
	{NAMES_OF("class_Map__instance_type__uint16_t"), IN_LAYOUT(map_type), 12, 12, -1},
	{NAMES_OF("type_BytecodeArray__BYTECODE_ARRAY_TYPE"), IN_LAYOUT(type_bytecode_array), 1,
	 65535, -1},
	{NAMES_OF("off_fp_bytecode_array"), IN_LAYOUT(frame_bytecode), -40, -24, 0},
	{NAMES_OF("off_fp_bytecode_offset"), IN_LAYOUT(frame_offset), -48, -32, 0},
	{NAMES_OF("scopeinfo_idx_first_vars"), IN_BINARY(scope_first), 3, 8, 3},
	{NAMES_OF("class_BytecodeArray__source_position_table__Object"),
	 IN_BINARY(bytecode_positions), 32, 32, 32},
	{NAMES_OF("class_BytecodeArray__data__uintptr_t"), IN_BINARY(bytecode_data), 48, 80, 0},
	{NAMES_OF("class_Code__instruction_size__int"), IN_BINARY(code_size), 40, 64, 56},
	{NAMES_OF("class_InstructionStream__instruction_start__uintptr_t",
		  "class_Code__instruction_start__uintptr_t"),
	 IN_BINARY(code_header), 16, 128, -1},
	{NAMES_OF("DeoptimizationDataInlinedFunctionCountIndex"), IN_BINARY(deopt_inlined), 0, 16,
	 1},
	{NAMES_OF("DeoptimizationDataLiteralArrayIndex"), IN_BINARY(deopt_literals), 0, 16, 2},
	{NAMES_OF("DeoptimizationDataOptimizationIdIndex"), IN_BINARY(deopt_optimization), 0, 16,
	 5},
	{NAMES_OF("DeoptimizationDataSharedFunctionInfoIndex",
		  "DeoptimizationDataWrappedSharedFunctionInfoIndex"),
	 IN_BINARY(deopt_shared), 0, 16, 6},
	{NAMES_OF("DeoptimizationDataInliningPositionsIndex"), IN_BINARY(deopt_inlining), 0, 16, 7},
};

static const struct {
	const char *name;
	size_t member, has;
} types[] = {
	{"type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE", offsetof(struct v8_types, shared),
	 0},
	{"type_Script__SCRIPT_TYPE", offsetof(struct v8_types, script), 0},
	{"type_ScopeInfo__SCOPE_INFO_TYPE", offsetof(struct v8_types, scope), 0},
	{"type_BytecodeArray__BYTECODE_ARRAY_TYPE", offsetof(struct v8_types, bytecodes), 0},
	{"type_Code__CODE_TYPE", offsetof(struct v8_types, code), 0},
	{"type_ByteArray__BYTE_ARRAY_TYPE", offsetof(struct v8_types, bytes), 0},
	{"type_InterpreterData__INTERPRETER_DATA_TYPE", offsetof(struct v8_types, interpreter_data),
	 0},
	{"type_InstructionStream__INSTRUCTION_STREAM_TYPE", offsetof(struct v8_types, stream),
	 offsetof(struct v8_types, has_stream)},
	{"type_SharedFunctionInfoWrapper__SHARED_FUNCTION_INFO_WRAPPER_TYPE",
	 offsetof(struct v8_types, shared_wrapper), offsetof(struct v8_types, has_shared_wrapper)},
	{"type_TrustedByteArray__TRUSTED_BYTE_ARRAY_TYPE", offsetof(struct v8_types, trusted_bytes),
	 offsetof(struct v8_types, has_trusted_bytes)},
	{"type_WasmModuleObject__WASM_MODULE_OBJECT_TYPE", offsetof(struct v8_types, wasm_module),
	 offsetof(struct v8_types, has_wasm_module)},
};

/* Kinds of frames that V8 has had. Those that are hidden only lead from one frame to another. */
static const struct {
	const char *name;
	bool hidden, native; /* native: native code may have called it */
} marks[] = {
	{"EntryFrame", true, true},
	{"ConstructEntryFrame", true, true},
	{"ExitFrame", true, false},
	{"BuiltinExitFrame", true, false},
	{"ApiCallbackExitFrame", true, false},
	{"ApiAccessorExitFrame", true, false},
	{"ApiConstructExitFrame", true, false},
	{"ApiNamedAccessorExitFrame", true, false},
	{"ApiIndexedAccessorExitFrame", true, false},
	{"InternalFrame", true, false},
	{"ConstructFrame", true, false},
	{"FastConstructFrame", true, false},
	{"ArgumentsAdaptorFrame", true, false},
	{"NativeFrame", true, true},
	{"CWasmEntryFrame", true, true},
	{"JsToWasmFrame", true, false},
	{"WasmToJsFrame", true, false},
	{"WasmToJsFunctionFrame", true, false},
	{"WasmExitFrame", true, false},
	{"WasmFrame", false, false},
	{"WasmCompiledFrame", false, false},
	{"IrregexpFrame", false, true},
	{"StubFrame", false, false},
	{"BuiltinFrame", false, false},
	{"TurbofanStubWithContextFrame", false, false},
	{"BuiltinContinuationFrame", true, false},
	{"JavaScriptBuiltinContinuationFrame", true, false},
	{"JavaScriptBuiltinContinuationWithCatchFrame", true, false},
	{"StackSwitchFrame", true, true},
	{"WasmDebugBreakFrame", true, false},
	{"WasmCompileLazyFrame", true, false},
	{"WasmLiftoffSetupFrame", true, false},
	{"WasmSegmentStartFrame", true, false},
	{"WasmJspiFrame", true, true},
	{"WasmStackEntryFrame", true, true},
	{"WasmStackExitFrame", true, true},
};

static void binary_missing(struct v8_binary *b, const char *what)
{
	if (b->why[0] == '\0')
		snprintf(b->why, sizeof(b->why), "%s", what);
}

static void reading_places(struct reading *r)
{
	struct v8_binary *b = r->b;

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		const struct place *p = &places[i];
		int32_t value = p->otherwise;

		if (!reading_any(r, p->names, &value) && p->otherwise < 0)
			binary_missing(b, p->names[0]);
		else if (value != p->otherwise && (value < p->least || value > p->most))
			binary_missing(b, p->names[0]);
		else
			memcpy((char *)b + p->member, &value, sizeof(value));
	}
}

static void reading_types(struct reading *r)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		char *at = (char *)&r->b->types;
		int32_t value;
		uint16_t type;

		if (!reading_constant(r, types[i].name, &value) || value < 1 || value > 65535) {
			if (types[i].has == 0)
				binary_missing(r->b, types[i].name);
			continue;
		}
		type = (uint16_t)value;
		memcpy(at + types[i].member, &type, sizeof(type));
		if (types[i].has != 0)
			at[types[i].has] = true;
	}
}

static void reading_marks(struct reading *r)
{
	struct v8_binary *b = r->b;

	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
		char name[80];
		int32_t value;

		snprintf(name, sizeof(name), "frametype_%s", marks[i].name);
		if (!reading_constant(r, name, &value) || value < 1 || value >= (int32_t)V8_MARKS)
			continue;
		snprintf(b->marks[value], sizeof(b->marks[value]), "%.*s",
			 (int)(strlen(marks[i].name) - 5), marks[i].name);
		if (marks[i].hidden)
			b->layout.hidden |= 1ull << value;
		if (strcmp(marks[i].name, "WasmFrame") == 0 ||
		    strcmp(marks[i].name, "WasmCompiledFrame") == 0)
			b->layout.wasm |= 1ull << value;
		if (!marks[i].native)
			b->layout.called_by_v8 |= 1ull << value;
	}
	if (strcmp(b->marks[1], "Entry") != 0 || strcmp(b->marks[2], "ConstructEntry") != 0)
		binary_missing(b, "frametype_EntryFrame");
}

static bool reading_is(const struct reading *r, const char *name, int32_t expected)
{
	int32_t value;

	return reading_constant(r, name, &value) && value == expected;
}

/* A walk reads a SharedFunctionInfo up to its flags. */
static bool flags_come_last(const struct v8_layout *l)
{
	return l->shared_flags >= l->shared_counts && l->shared_flags >= l->shared_script &&
	       l->shared_flags >= l->shared_name;
}

/* What is not exported, but follows. */
static void reading_derived(struct reading *r)
{
	struct v8_binary *b = r->b;
	int32_t value, weak = 0, fixed = 0, size = 8;
	bool adaptor = reading_constant(r, "frametype_ArgumentsAdaptorFrame", &value);

	/* A frame has the number of its arguments since there is no adaptor. */
	if (b->layout.frame_bytecode == 0)
		b->layout.frame_bytecode = adaptor ? -24 : -32;
	if (b->layout.frame_offset == 0)
		b->layout.frame_offset = b->layout.frame_bytecode - 8;
	/* A ScopeInfo was an array once. */
	reading_constant(r, "type_WeakFixedArray__WEAK_FIXED_ARRAY_TYPE", &weak);
	reading_constant(r, "type_FixedArray__FIXED_ARRAY_TYPE", &fixed);
	b->scope_base = b->types.scope > fixed && b->types.scope < weak ? 16 : 8;
	/* Bytecodes that are trusted keep other members first. */
	if (b->bytecode_data >= 64)
		b->bytecode_positions = 24;
	else if (b->bytecode_data == 0)
		b->bytecode_data = 54;
	b->code_start = 40;
	b->code_deopt = 16;
	b->code_positions = 24;
	if (b->types.has_stream) {
		b->stream_code = 8;
		if (b->bytecode_data >= 64) {
			b->code_deopt = 8;
			b->code_positions = 16;
		}
	}
	if (!flags_come_last(&b->layout))
		binary_missing(b, "flags as a function's last member");
	reading_constant(r, "TaggedSize", &size);
	if (size != 8)
		binary_missing(b, "pointers of eight bytes (TaggedSize)");
	if (!reading_is(r, "off_fp_function", -16) || !reading_is(r, "off_fp_context", -8))
		binary_missing(b, "v8dbg_off_fp_function");
}

static void reading_version(struct reading *r)
{
	static const char *const names[] = {
		"_ZN2v88internal7Version6major_E", "_ZN2v88internal7Version6minor_E",
		"_ZN2v88internal7Version6build_E", "_ZN2v88internal7Version6patch_E"};
	struct elf_symbol s;

	for (int i = 0; i < 4; i++)
		if (!elf_dynamic_symbol(r->elf, names[i], &s) ||
		    !elf_read_all(r->elf, s.address, &r->b->version[i], 4))
			r->b->version[i] = 0;
	/* An entry of a table of positions also says where a debugger may stop since 14. */
	r->b->positions_shift = r->b->version[0] >= 14 ? 2 : 1;
}

static void reading_builtin(struct reading *r, const char *name, uint64_t address)
{
	struct v8_binary *b = r->b;
	size_t n = strlen(name) + 1;

	if (r->full || b->n_builtins == BUILTINS_MAX || r->n_names + n > NAMES || n > 128)
		return;
	if (!b->builtins) {
		b->builtins = calloc(BUILTINS_MAX, sizeof(*b->builtins));
		b->names = malloc(NAMES);
	}
	if (!b->builtins || !b->names) {
		r->full = true;
		return;
	}
	memcpy(b->names + r->n_names, name, n);
	/* `start` is relative to the blob once that is known: it is less than 4 GiB in any case. */
	b->builtins[b->n_builtins++] =
		(struct v8_builtin){(uint32_t)(address - r->blob), (uint32_t)r->n_names};
	r->n_names += n;
}

/* The call in what has been the same code since it exists; 0: it is other code. */
static uint64_t reading_collector_call(const struct reading *r, uint64_t address)
{
	static const uint8_t expected[] = {
		0x55, 0x48, 0x89, 0xe5, 0x68, 0xcd, 0xcd, 0xcd, 0x00, 0x53, 0x41, 0x54, 0x41, 0x55,
		0x41, 0x56, 0x41, 0x57, 0x49, 0x89, 0xd0, 0x48, 0x89, 0xe2, 0x41, 0xff, 0xd0,
	};
	uint8_t code[sizeof(expected)];

	return elf_read_all(r->elf, address, code, sizeof(code)) &&
			       memcmp(code, expected, sizeof(code)) == 0
		       ? address + sizeof(code) - 3
		       : 0;
}

static bool is_code(const struct elf_file *f, uint64_t address)
{
	for (uint32_t i = 0; i < f->n_segments; i++) {
		const Elf64_Phdr *p = &f->segments[i];

		if (p->p_type == PT_LOAD && (p->p_flags & PF_X) && address >= p->p_vaddr &&
		    address - p->p_vaddr < p->p_filesz)
			return true;
	}
	return false;
}

static void reading_symbol(struct reading *r, const char *name, const struct elf_symbol *s)
{
	if (strncmp(name, "Builtins_", 9) == 0)
		reading_builtin(r, name + 9, s->address);
	else if (strncmp(name, "v8_Default_embedded_blob_", 25) == 0) {
		const char *rest = name + 25;
		bool text = is_code(r->elf, s->address);

		if (text && (strcmp(rest, "code_") == 0 || strcmp(rest, "code_data_") == 0 ||
			     strcmp(rest, "data_") == 0))
			r->b->blob = s->address;
		else if (strcmp(rest, "code_size_") == 0 || strcmp(rest, "size_") == 0)
			r->blob_size_at = s->address;
	} else if (strcmp(name, COLLECTOR) == 0) {
		r->b->collector_call = reading_collector_call(r, s->address);
	} else if (strcmp(name, SIZES) == 0) {
		r->sizes = s->address;
		r->n_sizes = s->size;
	}
}

/* What behind `lea` or `mov` to %rax loads through it. */
static bool is_load(const uint8_t *p)
{
	return (p[0] == 0x48 && p[1] == 0x8b && p[2] == 0x00) || (p[0] == 0x8b && p[1] == 0x00);
}

/* Past what functions begin with. */
static const uint8_t *skip_prologue(const uint8_t *p)
{
	if (memcmp(p, "\xf3\x0f\x1e\xfa", 4) == 0)
		p += 4;
	if (memcmp(p, "\x55\x48\x89\xe5", 4) == 0)
		p += 4;
	return p;
}

/* What a function of a few instructions returns, by the address of the blob or of the variable that
 * has its size: the one in `mov $…,%eax` or `lea`, or what relocations put where it loads from. */
static bool reading_getter(const struct reading *r, const char *name, uint64_t *ret)
{
	uint8_t c[24];
	const uint8_t *p;
	struct elf_symbol s;
	uint64_t at;
	int32_t rel;
	bool load, pointer;

	if (!elf_dynamic_symbol(r->elf, name, &s) || !elf_read_all(r->elf, s.address, c, sizeof(c)))
		return false;
	p = skip_prologue(c);
	if (p[0] == 0xb8) {
		memcpy(&rel, p + 1, 4);
		*ret = (uint32_t)rel;
		return true;
	}
	p += p[0] == 0x48;
	if (p[1] != 0x05 || (p[0] != 0x8d && p[0] != 0x8b))
		return false;
	memcpy(&rel, p + 2, 4);
	at = s.address + (uint64_t)(p + 6 - c) + (uint64_t)(int64_t)rel;
	load = is_load(p + 6);
	pointer = load && p[6] == 0x48;
	/* Through the global offset table, and then through the variable if that is a pointer. */
	if (p[0] == 0x8b && load && !elf_relocated(r->elf, at, &at))
		return false;
	if (pointer)
		return elf_relocated(r->elf, at, ret);
	*ret = at;
	return true;
}

static void reading_add(void *context, const char *name, uint32_t offset)
{
	struct reading *r = context;

	reading_builtin(r, name, r->b->blob + offset);
}

static void reading_blob_stripped(struct reading *r)
{
	uint64_t word = 0;
	uint32_t bytes;

	if (!reading_getter(r, "_ZN2v88internal23DefaultEmbeddedBlobCodeEv", &word) &&
	    !reading_getter(r, "_ZN2v88internal19DefaultEmbeddedBlobEv", &word))
		return;
	r->b->blob = word;
	if (!reading_getter(r, "_ZN2v88internal27DefaultEmbeddedBlobCodeSizeEv", &word) &&
	    !reading_getter(r, "_ZN2v88internal23DefaultEmbeddedBlobSizeEv", &word))
		return;
	r->blob_size_at = word;
	if (r->b->n_builtins == 0 && elf_read_all(r->elf, word, &bytes, sizeof(bytes)) &&
	    reading_getter(r, "_ZN2v88internal23DefaultEmbeddedBlobDataEv", &word))
		builtins_each(r->elf, word, bytes, reading_add, r);
}

static void reading_blob(struct reading *r)
{
	static const char *const begins[] = {"Builtins_", "v8_Default_embedded_blob_", COLLECTOR,
					     SIZES, NULL};
	struct v8_binary *b = r->b;
	uint32_t bytes = 0, n = 0;
	struct elf_symbols symbols;
	struct elf_symbol symbol;
	const char *name;

	if (elf_symbols_open(&symbols, r->elf, begins)) {
		while (elf_symbols_next(&symbols, &name, &symbol))
			reading_symbol(r, name, &symbol);
		elf_symbols_close(&symbols);
	}
	if (b->blob == 0 || r->blob_size_at == 0)
		reading_blob_stripped(r);
	if (b->blob == 0 || !elf_read_all(r->elf, r->blob_size_at, &bytes, 4) || bytes == 0 ||
	    bytes > BLOB_LIMIT) {
		binary_missing(b, "embedded builtins (v8_Default_embedded_blob_code_)");
		return;
	}
	b->blob_bytes = bytes;
	for (uint32_t i = 0; i < b->n_builtins; i++) {
		b->builtins[n] = b->builtins[i];
		b->builtins[n].start -= (uint32_t)b->blob;
		n += b->builtins[n].start < bytes;
	}
	b->n_builtins = n;
	builtins_sort(b);
}

/* Three rows, of bytes or (before 9) of words. Without them compiled code of the baseline compiler
 * has no lines. */
static void reading_sizes(struct reading *r)
{
	struct v8_binary *b = r->b;
	struct elf_symbol s;

	if (r->sizes == 0 && elf_dynamic_symbol(r->elf, SIZES, &s)) {
		r->sizes = s.address;
		r->n_sizes = s.size;
	}
	if (r->n_sizes == 0 || r->n_sizes % 3 != 0 || r->n_sizes / 3 > BYTECODES)
		return;
	b->sizes = malloc(r->n_sizes);
	if (!b->sizes || !elf_read_all(r->elf, r->sizes, b->sizes, r->n_sizes))
		return;
	b->n_sizes = (uint32_t)(r->n_sizes / 3);
}

static void reading_all(struct reading *r)
{
	struct v8_binary *b = r->b;

	if (b->version[0] == 0)
		binary_missing(b, "v8::internal::Version");
	reading_places(r);
	reading_types(r);
	reading_marks(r);
	reading_derived(r);
	reading_blob(r);
	if (b->why[0] == '\0')
		reading_sizes(r);
	b->layout.unknown = b->why[0] != '\0';
}

/* Whether there is a V8, and if asked for, all of it. */
static int binary_look(struct v8_binary *ret, int fd, bool all)
{
	struct reading r = {.b = ret};
	struct stat st;
	int32_t value, found = 0;

	*ret = (struct v8_binary){0};
	if (fstat(fd, &st) != 0 || st.st_size < SMALLEST)
		return 0;
	r.elf = malloc(sizeof(*r.elf));
	if (!r.elf)
		return -ENOMEM;
	if (elf_open(r.elf, fd)) {
		reading_version(&r);
		found = ret->version[0] != 0 || reading_constant(&r, "off_fp_function", &value);
		if (found && all)
			reading_all(&r);
	}
	free(r.elf);
	return found;
}

int binary_is_v8(int fd)
{
	struct v8_binary b;

	return binary_look(&b, fd, false);
}

int binary_read(struct v8_binary *ret, int fd)
{
	return binary_look(ret, fd, true);
}

void binary_fini(struct v8_binary *b)
{
	free(b->builtins);
	free(b->names);
	free(b->sizes);
}

void binary_release(struct v8_binary *b)
{
	if (b && --b->n_users == 0) {
		binary_fini(b);
		free(b);
	}
}

const char *binary_builtin(const struct v8_binary *b, uint64_t offset)
{
	uint32_t low = 0, high = b->n_builtins;

	if (offset >= b->blob_bytes)
		return NULL;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (b->builtins[middle].start <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 ? b->names + b->builtins[low - 1].name : NULL;
}
