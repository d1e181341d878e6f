/* SPDX-License-Identifier: Apache-2.0 */
/* What is not known of a frame is left out of it: its line, its script, what it has inlined. */
#include "v8/frames.h"

#include <string.h>

struct resolving {
	struct frames *frames;
	struct names *names;
	const struct v8_binary *binary;
};

static struct andiron_str text_add(struct frames *f, const char *text)
{
	size_t n = strlen(text);
	struct andiron_str s = {f->text + f->n_text, n};

	if (n > sizeof(f->text) - f->n_text)
		return (struct andiron_str){"", 0};
	memcpy(f->text + f->n_text, text, n);
	f->n_text += (uint32_t)n;
	return s;
}

static void frame_add(struct frames *f, const char *function, const char *file)
{
	struct andiron_runtime_frame *frame = &f->list[f->n];

	if (f->n == f->max || strlen(function) > sizeof(f->text) - f->n_text)
		return;
	frame->flags = frame->line = frame->first_line = 0;
	frame->function = text_add(f, function);
	frame->file = text_add(f, file);
	f->n++;
}

static uint32_t script_line(const struct names_script *s, int32_t position)
{
	uint32_t line = position >= 0 ? lines_find(&s->lines, (uint32_t)position) : 0;

	return line > 0 ? (uint32_t)((int64_t)line + s->line_offset) : 0;
}

static void function_add(struct resolving *r, const struct names_function *f, int32_t position)
{
	const struct names_script *s = f->script != 0 ? names_script(r->names, f->script) : NULL;
	uint32_t at = r->frames->n;

	frame_add(r->frames, f->name[0] ? f->name : "(anonymous)", s ? s->name : "");
	if (!s || r->frames->n == at)
		return;
	r->frames->list[at].first_line = script_line(s, f->start);
	if (f->start < 0 || f->end < 0 || (position >= f->start && position <= f->end))
		r->frames->list[at].line = script_line(s, position);
}

static const struct names_function *function_of(struct resolving *r, uint64_t id)
{
	return id != 0 ? names_function(r->names, id) : NULL;
}

static void inlined_add(struct resolving *r, uint64_t id, int32_t position)
{
	const struct names_function *f = function_of(r, id);

	if (f)
		function_add(r, f, position);
	else
		frame_add(r->frames, "[inlined]", "");
}

/* A function, and before it those that it has inlined at this call. */
static void call_add(struct resolving *r, const struct names_function *f, const struct code *code,
		     const struct code_call *call)
{
	const struct code_place *places = code->places + call->first;

	for (uint32_t i = call->n - 1; i > 0 && r->frames->n + 1 < r->frames->max; i--)
		inlined_add(r, code->callees[places[i].callee].function, places[i].at);
	function_add(r, f, places[0].at);
}

/* A function, and before it those that it has inlined at this place. */
static void optimized_add(struct resolving *r, const struct names_function *f,
			  const struct code *code, uint32_t offset, bool is_call)
{
	const struct code_call *call = is_call ? calls_find(code, offset + 1) : NULL;
	struct position p = {-1, -1};
	bool is_sure = false;

	if (call) {
		call_add(r, f, code, call);
		return;
	}
	positions_find(code->positions, code->n_positions, r->binary, calls_belongs(code, offset),
		       &p);
	for (uint32_t depth = 0; p.inlined >= 0 && (uint32_t)p.inlined < code->n_inlined &&
				 depth <= code->n_inlined && r->frames->n + 1 < r->frames->max;
	     depth++) {
		const struct code_inlined *i = &code->inlined[p.inlined];

		if (!is_sure && calls_doubt(code, i->shared, p.at))
			p.at = -1;
		inlined_add(r, i->function, p.at);
		p = i->position;
		is_sure = i->is_sure;
	}
	if (p.inlined >= 0 || (!is_sure && calls_doubt(code, code->shared, p.at)))
		p.at = -1;
	function_add(r, f, p.at);
}

static int32_t function_position(const struct resolving *r, const struct names_function *f,
				 uint32_t bytecode)
{
	struct position p = {-1, -1};

	positions_find(f->positions, f->n_positions, r->binary, bytecode, &p);
	return p.at;
}

static int32_t baseline_position(const struct resolving *r, const struct code *code,
				 uint32_t offset)
{
	struct position p = {-1, -1};
	uint32_t i = 0;

	while (i < code->n_steps && offset >= code->steps[i].end)
		i++;
	if (i < code->n_steps)
		positions_find(code->positions, code->n_positions, r->binary, code->steps[i].offset,
			       &p);
	return p.at;
}

/* The code that a sample was taken in: what is there by now may have replaced it. */
static const struct code *code_of(struct resolving *r, uint64_t process_id, uint64_t where)
{
	const struct names_code *c = names_code(r->names, process_id, V8_ADDRESS(where));
	uint64_t compilation = V8_COMPILATION(where);

	if (!c || (compilation != 0 ? !names_code_has(c, compilation) : c->replaced))
		return NULL;
	return &c->code;
}

static void compiled_add(struct resolving *r, const struct names_function *f, uint64_t where)
{
	const struct code *code = where != V8_NOWHERE ? code_of(r, f->key.process_id, where) : NULL;
	/* A return address belongs to the call before it. */
	bool is_call = !(where & V8_EXACT);
	uint32_t offset = code ? (uint32_t)(V8_ADDRESS(where) - code->start) - is_call : 0;

	if (code && (code->script_id != f->key.script_id || code->literal != f->key.flags >> 32))
		code = NULL;
	if (code && code->kind == CODE_OPTIMIZED)
		optimized_add(r, f, code, offset, is_call);
	else if (code && code->kind == CODE_BASELINE)
		function_add(r, f, baseline_position(r, code, offset));
	else
		function_add(r, f, -1);
}

static void interpreted_add(struct resolving *r, const struct names_function *f, uint64_t where)
{
	int64_t offset = (int64_t)(where >> 32) - (r->binary->bytecode_data - 1);

	function_add(r, f,
		     where != V8_NOWHERE && offset >= 0 ? function_position(r, f, (uint32_t)offset)
							: -1);
}

/* The builtin around an address; NULL: there is none. */
static const char *builtin_at(const struct frames_process *p, uint64_t pc)
{
	const char *name;

	for (uint32_t i = 0; i < p->n_blobs; i++)
		if (pc >= p->blobs[i].from && pc < p->blobs[i].to) {
			name = binary_builtin(p->binary, pc - p->blobs[i].from);
			return name ? name : "[builtin]";
		}
	return NULL;
}

static void stub_add(struct resolving *r, const struct frames_process *p, uint64_t mark,
		     uint64_t where)
{
	const char *name = builtin_at(p, V8_ADDRESS(where) - !(where & V8_EXACT));

	if (!name && mark < V8_MARKS) {
		if (strcmp(p->binary->marks[mark], "Irregexp") == 0)
			name = "[regular expression]";
		else if (strncmp(p->binary->marks[mark], "Wasm", 4) == 0)
			name = "[wasm]";
	}
	frame_add(r->frames, name ? name : "[code]", "");
}

/* Code of regular expressions says what it is since V8 11. Before, builtins call it that are named
 * after what they do: RegExpPrototypeExec, RegExpReplace. */
static void called_add(struct resolving *r, const struct frames_process *p, uint64_t where)
{
	const char *caller = builtin_at(p, V8_ADDRESS(where) - 1);

	frame_add(r->frames,
		  caller && strncmp(caller, "RegExp", 6) == 0 ? "[regular expression]" : "[code]",
		  "");
}

static void wasm_add(struct resolving *r, const struct frames_process *p, uint64_t where)
{
	const struct code *code = code_of(r, p->process_id, where);

	frame_add(r->frames, code && code->kind == CODE_WASM ? code->name : "[wasm]", "");
}

void frames_resolve(struct frames *ret, struct names *names, const struct frames_process *process,
		    uint64_t what, uint64_t where)
{
	struct resolving r = {ret, names, process->binary};
	uint32_t kind = (uint32_t)V8_KIND(what);
	const struct names_function *f;

	if (kind == V8_STUB) {
		stub_add(&r, process, V8_ID(what), where);
		return;
	}
	if (kind == V8_CALLED) {
		called_add(&r, process, where);
		return;
	}
	if (kind == V8_WASM) {
		wasm_add(&r, process, where);
		return;
	}
	f = names_function(names, V8_ID(what));
	if (!f)
		return;
	if (kind == V8_COMPILED)
		compiled_add(&r, f, where);
	else if (kind == V8_INTERPRETED)
		interpreted_add(&r, f, where);
	else if (f->name[0] != '\0')
		function_add(&r, f, -1);
	else
		stub_add(&r, process, V8_MARKS, where);
}
