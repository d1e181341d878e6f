/* SPDX-License-Identifier: Apache-2.0 */
/* The toy machine, which burns CPU until it is killed.
 *
 *   toy        main → run → native_start → outer → middle → native_bridge → inner (→ native_crunch)
 *   toy N      N times dive → native_dive, and then inner
 *   toy dig N  one entry: N times dig, and then inner
 *   toy ms N   as without arguments, until it has used so many ms of CPU
 *   toy jit    main → run → native_jit → code made at run time → native_crunch
 *
 * It is compiled without frame pointers, except for the function by which the machine is entered.
 */
#include "toy.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define APART  __attribute__((noinline))
#define DEPTH  1024
#define ROUNDS 400000

enum { TOY_CALL, TOY_NATIVE, TOY_SPIN, TOY_RETURN, TOY_DIG };
enum { OUTER, MIDDLE, INNER, DIVE, DIG };
enum { BRIDGE, CRUNCH, AGAIN };

static const struct toy_op outer[] = {{TOY_SPIN, 1}, {TOY_CALL, MIDDLE}, {TOY_RETURN, 0}};
static const struct toy_op middle[] = {{TOY_NATIVE, BRIDGE}, {TOY_RETURN, 0}};
static const struct toy_op inner[] = {{TOY_SPIN, ROUNDS}, {TOY_NATIVE, CRUNCH}, {TOY_RETURN, 0}};
static const struct toy_op dive[] = {{TOY_NATIVE, AGAIN}, {TOY_RETURN, 0}};
static const struct toy_op dig[] = {{TOY_DIG, 0}, {TOY_RETURN, 0}};
static const struct toy_function functions[] = {
	{"outer", outer}, {"middle", middle}, {"inner", inner}, {"dive", dive}, {"dig", dig}};

struct toy_frame *volatile toy_top;
static struct toy_frame frames[DEPTH];
static volatile uint64_t sink;
static unsigned to_dive;

static APART void toy_run(uint32_t function);

static APART void spin(uint32_t rounds)
{
	for (uint32_t i = 0; i < rounds; i++)
		sink += i;
}

static APART void native_crunch(void)
{
	for (uint32_t i = 0; i < ROUNDS; i++)
		sink += i ^ sink >> 7;
}

static APART void native_bridge(void)
{
	toy_run(INNER);
	sink++;
}

static APART void native_dive(void)
{
	unsigned left = to_dive;

	if (left > 0) {
		to_dive = left - 1;
		toy_run(DIVE);
		to_dive = left;
	} else {
		toy_run(INNER);
	}
	sink++;
}

static void push(uint32_t function, void *record, void *cfa)
{
	struct toy_frame *back = toy_top, *f = back ? back + 1 : frames;

	if (f == frames + DEPTH)
		abort();
	*f = (struct toy_frame){
		.back = (uintptr_t)back,
		.function = (uintptr_t)&functions[function],
		.line = 1,
		.first = record != NULL,
		.record = record ? (uintptr_t)record : back->record,
		.cfa = record ? (uintptr_t)cfa : back->cfa,
	};
	toy_top = f;
}

/* The machine. What is called from here is native, but for the operation that spins. */
void toy_interpret(void);
APART void toy_interpret(void)
{
	static void (*const natives[])(void) = {native_bridge, native_crunch, native_dive};

	for (;;) {
		struct toy_frame *f = toy_top;
		const struct toy_function *function = (const void *)(uintptr_t)f->function;
		const struct toy_op *op = &function->code[f->line - 1];

		if (op->what == TOY_CALL) {
			push(op->argument, NULL, NULL);
			continue;
		}
		if (op->what == TOY_DIG) {
			push(to_dive > 0 ? DIG : INNER, NULL, NULL);
			to_dive -= to_dive > 0;
			continue;
		}
		if (op->what == TOY_NATIVE)
			natives[op->argument]();
		for (uint32_t i = 0; op->what == TOY_SPIN && i < op->argument; i++)
			sink += i;
		if (op->what == TOY_RETURN && f->first)
			return;
		if (op->what == TOY_RETURN)
			toy_top = (void *)(uintptr_t)f->back;
		toy_top->line++;
	}
}

static APART void toy_run(uint32_t function)
{
	struct toy_frame *back = toy_top;

	push(function, __builtin_frame_address(0), __builtin_dwarf_cfa());
	toy_interpret();
	toy_top = back;
}

static APART void native_start(void)
{
	toy_run(OUTER);
	spin(1);
}

/* Calls its argument, with a frame pointer. */
#if defined(__aarch64__)
static const unsigned char code[] = {0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0x00, 0x00,
				     0x3f, 0xd6, 0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6};
#else
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
#endif

typedef void (*jit_code)(void (*)(void));

#define JIT_PAGES 4096 /* bytes of one; each is a mapping of its own */

static jit_code jit_compile(void)
{
	unsigned char *p = mmap(NULL, JIT_PAGES * 2, PROT_READ | PROT_WRITE | PROT_EXEC,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		abort();
	for (unsigned i = 0; i < sizeof(code); i++)
		p[i] = code[i];
	mprotect(p + JIT_PAGES, JIT_PAGES, PROT_NONE); /* no neighbour is the same mapping */
	__builtin___clear_cache((char *)p, (char *)p + sizeof(code));
	return (jit_code)(uintptr_t)p;
}

static APART void native_jit(void)
{
	static jit_code pages[16];

	for (unsigned i = 0; i < 16; i++) {
		if (!pages[i])
			pages[i] = jit_compile();
		for (unsigned k = 0; k < 300; k++)
			pages[i](native_crunch);
	}
	sink++;
}

static APART void run(int argc, char **argv)
{
	if (argc > 1 && argv[1][0] == 'm') {
		if (clock() >= strtol(argv[2], NULL, 10) * (CLOCKS_PER_SEC / 1000))
			exit(0);
		argc = 1;
	}
	to_dive = argc > 1 ? (unsigned)strtoul(argv[argc - 1], NULL, 10) : 0;
	if (argc > 1 && argv[1][0] == 'j') {
		native_jit();
	} else if (argc > 2) {
		toy_run(DIG);
		sink++;
	} else if (argc > 1) {
		to_dive--;
		toy_run(DIVE);
	} else {
		native_start();
	}
}

int main(int argc, char **argv)
{
	for (;;)
		run(argc, argv);
}
