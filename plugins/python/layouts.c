/* SPDX-License-Identifier: Apache-2.0 */
/* See layouts.h. The tables hold for 64-bit builds of every release of a minor version. Offsets are
 * those of CPython's own headers, as of 3.6.15, 3.7.16, 3.8.18, 3.9.18, 3.10.13, 3.11.7 and 3.12.1;
 * those of _Py_DebugOffsets as of 3.13.0, 3.14.10 and 3.15.2. */
#include "python/layouts.h"

#include <stdio.h>
#include <string.h>

#define MINOR(version) ((version) >> 16 & 0xff)
#define NONE           PYTHON_NO_FIELD

/* What is the same from 3.6 to 3.12. PyInterpreterState and PyThreadState: Include/pystate.h, from
 * 3.8 on internal/pycore_pystate.h, pycore_interp.h and cpython/pystate.h. Objects:
 * Include/object.h and cpython/object.h, bytesobject.h, unicodeobject.h (3.8: cpython/). */
static const struct python_layout common = {
	.interp_next = 0,
	.thread_next = 8,
	.thread_interp = 16,
	.frame_entry = NONE,
	.frame_tlbc = NONE,
	.code_traceable = NONE,
	.code_changes = NONE,
	.thread_top = NONE,
	.object_type = 8,
	.type_name = 24,
	.type_flags = 168,
	.var_size = 16,
	.bytes_data = 32,
	.text_length = 16,
	.text_hash = 24,
	.text_state = 32,
	.text_ascii = 48,
	.text_compact = 72,
	.text_shift = 2,
};

/* Frames that are objects: 3.6 to 3.10. PyFrameObject: Include/frameobject.h (3.9: cpython/).
 * PyCodeObject: Include/code.h (3.8: cpython/). _PyRuntimeState with the state that holds the GIL:
 * internal/pystate.h, from 3.8 on internal/pycore_pystate.h, 3.9 pycore_runtime.h. CFrame (3.10):
 * cpython/pystate.h. */
static const struct {
	uint16_t head, gil_state, thread_id, instruction, state, running, first_line, file;
} objects[] = {
	{0, 0, 152, 120, 132, 1, 36, 96},      /* 3.6 */
	{24, 1480, 176, 104, 116, 1, 36, 96},  /* 3.7 */
	{32, 1368, 176, 104, 116, 1, 40, 104}, /* 3.8 */
	{32, 568, 176, 104, 116, 1, 40, 104},  /* 3.9 */
	{32, 568, 176, 96, 108, 0, 40, 104},   /* 3.10 */
};

static void lay_objects(uint32_t minor, struct python_layout *l)
{
	l->kind = minor == 10 ? PYTHON_COUNTED : PYTHON_OBJECTS;
	l->runtime_current = minor == 6;
	l->runtime_head = objects[minor - 6].head;
	l->runtime_gil_state = objects[minor - 6].gil_state;
	l->interp_threads = 8;
	l->thread_id = objects[minor - 6].thread_id;
	l->thread_frame = 24;
	l->thread_top = minor == 10 ? 48 : NONE;
	l->cframe_previous = 8;
	l->frame_previous = 24;
	l->frame_code = 32;
	l->frame_instruction = objects[minor - 6].instruction;
	l->frame_state = objects[minor - 6].state;
	l->running = objects[minor - 6].running;
	l->frame_span = (uint16_t)(l->frame_instruction + 8);
	l->code_first_line = objects[minor - 6].first_line;
	l->code_file = objects[minor - 6].file;
	l->code_name = (uint16_t)(l->code_file + 8);
	l->code_lines = (uint16_t)(l->code_file + 16);
	l->code_span = (uint16_t)(l->code_lines + 8);
}

/* _PyInterpreterFrame: internal/pycore_frame.h. _PyCFrame: cpython/pystate.h. PyCodeObject:
 * cpython/code.h, where co_warmup counts calls. The list of interpreters: pycore_runtime.h. */
static void lay_3_11(struct python_layout *l)
{
	l->kind = PYTHON_CFRAMES;
	l->runtime_head = 40;
	l->interp_threads = 16;
	l->thread_id = 152;
	l->thread_top = 56;
	l->cframe_frame = 8;
	l->cframe_previous = 16;
	l->frame_previous = 48;
	l->frame_code = 32;
	l->frame_instruction = 56;
	l->frame_entry = 68;
	l->frame_owner = 69;
	l->frame_span = 72;
	l->code_first_line = 72;
	l->code_file = 112;
	l->code_name = 128;
	l->code_lines = 136;
	l->code_bytes = 184;
	l->code_changes = 52;
	l->code_span = 144;
}

/* The same headers. */
static void lay_3_12(struct python_layout *l)
{
	l->kind = PYTHON_CFRAMES;
	l->runtime_head = 40;
	l->runtime_size = 0x70000;
	l->interp_threads = 72;
	l->thread_id = 136;
	l->thread_top = 56;
	l->cframe_frame = 0;
	l->cframe_previous = 8;
	l->frame_previous = 8;
	l->frame_code = 0;
	l->frame_instruction = 56;
	l->frame_owner = 70;
	l->frame_span = 72;
	l->code_first_line = 68;
	l->code_file = 112;
	l->code_name = 128;
	l->code_lines = 136;
	l->code_bytes = 192;
	l->code_traceable = 176;
	l->code_span = 144;
	l->text_hash = NONE;
	l->text_ascii = 40;
	l->text_compact = 56;
}

bool layout_of_version(uint32_t version, struct python_layout *ret)
{
	uint32_t minor = MINOR(version);

	*ret = common;
	ret->version = version;
	if (version >> 24 != 3 || minor < 6 || minor > 12)
		return false;
	if (minor == 12)
		lay_3_12(ret);
	else if (minor == 11)
		lay_3_11(ret);
	else
		lay_objects(minor, ret);
	return true;
}

/* Words of _Py_DebugOffsets that we read: internal/pycore_runtime.h of 3.13, pycore_debug_offsets.h
 * from 3.14 on. Each version adds some in between. */
enum offset {
	FREE_THREADED,
	RUNTIME_SIZE,
	RUNTIME_HEAD,
	INTERP_NEXT,
	INTERP_THREADS,
	THREAD_NEXT,
	THREAD_INTERP,
	THREAD_FRAME,
	THREAD_ID,
	FRAME_SIZE,
	FRAME_PREVIOUS,
	FRAME_CODE,
	FRAME_INSTRUCTION,
	FRAME_OWNER,
	CODE_SIZE,
	CODE_FILE,
	CODE_NAME,
	CODE_LINES,
	CODE_FIRST_LINE,
	CODE_BYTES,
	OBJECT_TYPE,
	TYPE_NAME,
	TYPE_FLAGS,
	VAR_SIZE,
	BYTES_DATA,
	TEXT_STATE,
	TEXT_LENGTH,
	TEXT_ASCII,
	FRAME_TLBC,
	CODE_TLBC,
	N_OFFSETS,
};

#define FIRST 13u /* the first version that has them */

/* Where each stands: in 3.13, 3.14 and 3.15; what it must be below; how people call it. */
static const struct {
	uint8_t word[3];
	uint32_t below;
	const char *name;
} places[N_OFFSETS] = {
	/* clang-format off */
	[FREE_THREADED]     = {{2, 2, 2},    2,          "free_threaded"},
	[RUNTIME_SIZE]      = {{3, 3, 3},    1u << 26,   "runtime_state.size"},
	[RUNTIME_HEAD]      = {{5, 5, 5},    1u << 24,   "runtime_state.interpreters_head"},
	[INTERP_NEXT]       = {{8, 8, 8},    1u << 24,   "interpreter_state.next"},
	[INTERP_THREADS]    = {{9, 9, 9},    1u << 24,   "interpreter_state.threads_head"},
	[THREAD_NEXT]       = {{21, 24, 24}, 0x8000,     "thread_state.next"},
	[THREAD_INTERP]     = {{22, 25, 25}, 0x8000,     "thread_state.interp"},
	[THREAD_FRAME]      = {{23, 26, 26}, 0x8000,     "thread_state.current_frame"},
	[THREAD_ID]         = {{24, 27, 30}, 0x8000,     "thread_state.thread_id"},
	[FRAME_SIZE]        = {{28, 31, 39}, PYTHON_FRAME_SPAN + 1, "interpreter_frame.size"},
	[FRAME_PREVIOUS]    = {{29, 32, 40}, PYTHON_FRAME_ANY, "interpreter_frame.previous"},
	[FRAME_CODE]        = {{30, 33, 41}, PYTHON_FRAME_ANY, "interpreter_frame.executable"},
	[FRAME_INSTRUCTION] = {{31, 34, 42}, PYTHON_FRAME_ANY, "interpreter_frame.instr_ptr"},
	[FRAME_OWNER]       = {{33, 36, 44}, PYTHON_FRAME_ANY, "interpreter_frame.owner"},
	[CODE_SIZE]         = {{34, 39, 47}, PYTHON_CODE_SPAN + 1, "code_object.size"},
	[CODE_FILE]         = {{35, 40, 48}, PYTHON_CODE_ANY, "code_object.filename"},
	[CODE_NAME]         = {{37, 42, 50}, PYTHON_CODE_ANY, "code_object.qualname"},
	[CODE_LINES]        = {{38, 43, 51}, PYTHON_CODE_ANY, "code_object.linetable"},
	[CODE_FIRST_LINE]   = {{39, 44, 52}, PYTHON_CODE_ANY, "code_object.firstlineno"},
	[CODE_BYTES]        = {{43, 48, 56}, PYTHON_CODE_SPAN, "code_object.co_code_adaptive"},
	[OBJECT_TYPE]       = {{45, 51, 59}, 128,        "pyobject.ob_type"},
	[TYPE_NAME]         = {{47, 53, 61}, 1024,       "type_object.tp_name"},
	[TYPE_FLAGS]        = {{49, 55, 63}, 1024,       "type_object.tp_flags"},
	[VAR_SIZE]          = {{65, 75, 87}, 128,        "bytes_object.ob_size"},
	[BYTES_DATA]        = {{66, 76, 88}, 128,        "bytes_object.ob_sval"},
	[TEXT_STATE]        = {{68, 78, 90}, 128,        "unicode_object.state"},
	[TEXT_LENGTH]       = {{69, 79, 91}, 128,        "unicode_object.length"},
	[TEXT_ASCII]        = {{70, 80, 92}, 128,        "unicode_object.asciiobject_size"},
	[FRAME_TLBC]        = {{0, 38, 46},  PYTHON_FRAME_ANY, "interpreter_frame.tlbc_index"},
	[CODE_TLBC]         = {{0, 49, 57},  PYTHON_CODE_ANY, "code_object.co_tlbc"},
	/* clang-format on */
};

static uint64_t word_at(const unsigned char *bytes, size_t index)
{
	uint64_t ret;

	memcpy(&ret, bytes + index * 8, sizeof(ret));
	return ret;
}

/* As much of a code object as has our fields. */
static uint16_t span_of_code(const struct python_layout *l)
{
	const uint16_t fields[] = {l->object_type, l->code_first_line, l->code_file,
				   l->code_name,   l->code_lines,      l->code_tlbc};
	uint16_t most = 0;

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		if (fields[i] > most)
			most = fields[i];
	return (uint16_t)(most + 8);
}

static void lay_offsets(const uint32_t *at, uint32_t minor, struct python_layout *l)
{
	bool copies = at[FREE_THREADED] && minor >= 14;

	l->kind = PYTHON_ENTRIES;
	l->runtime_head = at[RUNTIME_HEAD];
	l->runtime_size = at[RUNTIME_SIZE];
	l->interp_next = at[INTERP_NEXT];
	l->interp_threads = at[INTERP_THREADS];
	l->thread_next = (uint16_t)at[THREAD_NEXT];
	l->thread_interp = (uint16_t)at[THREAD_INTERP];
	l->thread_frame = (uint16_t)at[THREAD_FRAME];
	l->thread_id = (uint16_t)at[THREAD_ID];
	l->frame_previous = (uint16_t)at[FRAME_PREVIOUS];
	l->frame_code = (uint16_t)at[FRAME_CODE];
	l->frame_instruction = (uint16_t)at[FRAME_INSTRUCTION];
	l->frame_owner = (uint16_t)at[FRAME_OWNER];
	l->frame_span = (uint16_t)at[FRAME_SIZE];
	l->code_first_line = (uint16_t)at[CODE_FIRST_LINE];
	l->code_file = (uint16_t)at[CODE_FILE];
	l->code_name = (uint16_t)at[CODE_NAME];
	l->code_lines = (uint16_t)at[CODE_LINES];
	l->code_bytes = (uint16_t)at[CODE_BYTES];
	l->code_traceable = (uint16_t)((copies ? at[CODE_TLBC] : at[CODE_BYTES]) - 16);
	l->object_type = (uint16_t)at[OBJECT_TYPE];
	l->type_name = (uint16_t)at[TYPE_NAME];
	l->type_flags = (uint16_t)at[TYPE_FLAGS];
	l->var_size = (uint16_t)at[VAR_SIZE];
	l->bytes_data = (uint16_t)at[BYTES_DATA];
	l->text_length = (uint16_t)at[TEXT_LENGTH];
	l->text_state = (uint16_t)at[TEXT_STATE];
	l->text_ascii = (uint16_t)at[TEXT_ASCII];
	l->text_compact = (uint16_t)(at[TEXT_ASCII] + 16);
	l->text_hash = NONE;
	l->text_shift = copies ? 8 : 2;
	l->code_tlbc = copies ? (uint16_t)at[CODE_TLBC] : 0;
	l->frame_tlbc = copies ? (uint16_t)at[FRAME_TLBC] : NONE;
	l->code_span = span_of_code(l);
}

const char *layout_of_runtime(const unsigned char *bytes, size_t n, struct python_layout *ret)
{
	uint32_t minor, at[N_OFFSETS];

	*ret = common;
	if (n < LAYOUT_OFFSETS_BYTES || memcmp(bytes, "xdebugpy", 8) != 0)
		return "no _Py_DebugOffsets in _PyRuntime";
	ret->version = (uint32_t)word_at(bytes, 1);
	minor = MINOR(ret->version);
	if (word_at(bytes, 1) >> 24 != 3 || minor < FIRST || minor > FIRST + 2)
		return "no table of _Py_DebugOffsets for this version";
	for (size_t i = 0; i < N_OFFSETS; i++) {
		uint8_t where = places[i].word[minor - FIRST];
		uint64_t value = where ? word_at(bytes, where) : 0;

		if (value >= places[i].below)
			return places[i].name;
		at[i] = (uint32_t)value;
	}
	if (at[CODE_BYTES] < 64 || (at[FRAME_CODE] | at[FRAME_PREVIOUS] | at[CODE_NAME]) & 7)
		return "code_object.co_code_adaptive";
	ret->free_threaded = (uint16_t)at[FREE_THREADED];
	lay_offsets(at, minor, ret);
	return NULL;
}

void layout_version_text(const struct python_layout *l, char *ret, size_t n)
{
	static const char *const levels[16] = {[0xa] = "a", [0xb] = "b", [0xc] = "rc"};
	const char *level = levels[l->version >> 4 & 15];
	char serial[8] = "";

	if (level)
		snprintf(serial, sizeof(serial), "%s%u", level, l->version & 15);
	snprintf(ret, n, "%u.%u.%u%s%s", l->version >> 24, MINOR(l->version),
		 l->version >> 8 & 0xff, serial, l->free_threaded ? "t" : "");
}
