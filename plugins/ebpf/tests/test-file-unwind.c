/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks that are walked by the files themselves: this program's own, copied while it is there. */
#include "ebpf/tests/test-live.h"

#include "ebpf/unwind-store/mapped-rows.h"
#include "ebpf/unwinding/file-unwind.h"

#include "elf/tests/test-write.h"
#include "testing/test.h"

#include <errno.h>
#include <execinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#define DEPTH        20
#define EXPECTED_MAX 128
#define COPY_MAX     ((size_t)1 << 20)
#define NOINLINE     __attribute__((noinline))

struct stack_of_ours {
	struct live *live;
	const struct process *process;
	struct file_unwind unwind;
	struct sampler_snapshot snapshot;
	struct walk_stack stacks[SAMPLER_COPIES];
	struct andiron_walk walk;
	uint64_t start_stack, cut; /* bytes that the copy ends before it */
	uint8_t *copy;
	void *expected[EXPECTED_MAX];
	int n_expected;
};

static void take_registers(struct sampler_snapshot *c, const ucontext_t *u)
{
#if defined(__aarch64__)
	memcpy(c->regs, u->uc_mcontext.regs, 31 * sizeof(c->regs[0]));
	c->regs[UNWIND_ARM_SP] = u->uc_mcontext.sp;
	c->pc = u->uc_mcontext.pc;
#else
	static const int numbers[16] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
					REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
					REG_R12, REG_R13, REG_R14, REG_R15};

	for (int i = 0; i < 16; i++)
		c->regs[i] = (uint64_t)u->uc_mcontext.gregs[numbers[i]];
	c->pc = (uint64_t)u->uc_mcontext.gregs[REG_RIP];
#endif
	c->known = ~0u;
	c->exact = 1;
}

/* Copies the stack from here up to where it began, and walks the copy of it while that is right. */
static NOINLINE bool walk_here(struct stack_of_ours *s)
{
	struct walk_stack *stack = &s->stacks[SAMPLER_COPY_STACK];
	struct iovec from, to;
	ucontext_t u;

	expect_eq(getcontext(&u), 0);
	take_registers(&s->snapshot, &u);
	s->n_expected = backtrace(s->expected, EXPECTED_MAX);
	stack->at = s->snapshot.regs[WALK_STACK_POINTER];
	stack->n = s->start_stack - stack->at - s->cut;
	expect(stack->n <= COPY_MAX);
	to = (struct iovec){s->copy, stack->n};
	from = (struct iovec){(void *)(uintptr_t)stack->at,
			      stack->n}; /* NOLINT: the stack pointer */
	/* The kernel reads what the sanitizers would not let us read. */
	expect_eq(process_vm_readv(getpid(), &to, 1, &from, 1, 0), stack->n);
	stack->p = s->copy;
	return file_unwind_walk(&s->unwind, &s->live->objects, s->process->maps, &s->snapshot,
				s->stacks, &s->walk);
}

static NOINLINE bool walk_below(struct stack_of_ours *s, int depth)
{
	bool whole = depth > 0 ? walk_below(s, depth - 1) : walk_here(s);

	__asm__ volatile("" ::: "memory");
	return whole;
}

static void begin(struct stack_of_ours *s)
{
	struct process *p;

	*s = (struct stack_of_ours){.live = live_new(), .copy = malloc(COPY_MAX)};
	s->start_stack = s->live->t.info.start_stack;
	p = processes_note(&s->live->t, &s->live->self);
	process_map(&s->live->t, p);
	expect(p->maps && s->copy);
	s->process = p;
}

static void end(struct stack_of_ours *s)
{
	file_unwind_free(&s->unwind);
	live_free(s->live);
	free(s->copy);
}

/* Frame by frame as the C library's own unwinder, and again by the rules remembered. */
TEST(a_stack_is_walked_by_its_files)
{
	struct stack_of_ours s;
	int n;

	begin(&s);
	for (int round = 0; round < 2; round++) {
		expect(walk_below(&s, DEPTH));
		expect_eq(s.walk.end, UNWIND_END_COMPLETE);
		n = (int)s.walk.n_words;
		expect(n > DEPTH && s.n_expected >= n);
		/* From the outermost on: a sanitizer's frame may stand between. */
		for (int i = 1; i < n; i++)
			expect_eq(s.walk.frames[n - i] + 1,
				  (uint64_t)(uintptr_t)s.expected[s.n_expected - i]);
	}
	end(&s);
}

/* A copy that ends early is walked to its end, since tables would not lead further. One of a
 * process whose files cannot be opened has to wait. */
TEST(what_its_files_do_not_tell_has_to_wait)
{
	struct stack_of_ours s;
	struct mapset nothing = {0};

	begin(&s);
	s.cut = s.start_stack - (uint64_t)(uintptr_t)__builtin_frame_address(0);
	expect(walk_below(&s, DEPTH));
	expect_eq(s.walk.end, UNWIND_END_CUT);
	expect(s.walk.n_words > 1 && s.walk.n_words < DEPTH + 8);
	s.cut = 0;
	expect(walk_below(&s, DEPTH));
	expect_eq(s.walk.end, UNWIND_END_COMPLETE);
	expect(!file_unwind_walk(&s.unwind, &s.live->objects, &nothing, &s.snapshot, s.stacks,
				 &s.walk));
	end(&s);
	begin(&s);
	for (uint64_t i = 0; i < s.live->n; i++) {
		close(s.live->fds[i]);
		s.live->fds[i] = -1;
	}
	expect(!walk_below(&s, DEPTH));
	end(&s);
}

/* Who does not need it any more has none of it. */
TEST(memory_is_given_back)
{
	struct stack_of_ours s;

	begin(&s);
	expect(walk_below(&s, 1));
	file_unwind_rest(&s.unwind);
	expect(s.unwind.rows != NULL && s.unwind.files[0].id);
	file_unwind_rest(&s.unwind);
	expect(s.unwind.rows == NULL && !s.unwind.files[0].id);
	end(&s);
}

/* Who comes last has a place, and rules that were another file's are not taken for its own. */
TEST(files_make_room_for_others)
{
	struct stack_of_ours s;

	begin(&s);
	for (size_t i = 0; i < FILE_UNWIND_FILES; i++)
		s.unwind.files[i].id = ++s.unwind.n_opened;
	expect(walk_below(&s, DEPTH));
	for (size_t i = 0; i < FILE_UNWIND_ROWS; i++)
		s.unwind.rows[i].row.rule = 0;
	expect(!walk_below(&s, DEPTH));
	for (size_t i = 0; i < FILE_UNWIND_FILES; i++)
		s.unwind.files[i].id = ++s.unwind.n_opened;
	expect(walk_below(&s, DEPTH));
	end(&s);
}

static int walk_once(void *context)
{
	struct stack_of_ours *s = context;
	bool whole = walk_below(s, 1);

	file_unwind_free(&s->unwind);
	return whole ? 0 : -ENOMEM;
}

TEST(survives_out_of_memory)
{
	struct stack_of_ours s;

	begin(&s);
	test_each_failing_allocation(walk_once, &s);
	end(&s);
}

static int no_row(void *context, const struct elf_row *row)
{
	return 0;
}

/* A function that an older host's table ends before, or that a host does not have, is never called:
 * a file that names its debug file is then read without it. */
TEST(a_host_that_opens_no_debug_files_is_enough)
{
	const struct elf_rows_options options = {0};
	struct andiron_objects tables[2];
	struct live *live = live_new();
	struct elf_writer w;
	int fd;

	elf_writer_init(&w);
	elf_write_section(&w, ".gnu_debuglink", SHT_PROGBITS, 0, "x.debug\0\1\2\3\4", 12);
	fd = elf_write_memfd(&w);
	elf_writer_fini(&w);
	tables[0] = tables[1] = *(const struct andiron_objects *)live->objects.table;
	tables[0].open_named = NULL;
	tables[1].size = offsetof(struct andiron_objects, open_named);
	memset(&tables[1].open_named, 0x5a, sizeof(tables[1].open_named));
	for (int i = 0; i < 2; i++) {
		struct andiron_extension objects = {&tables[i], live};
		struct mapped_file *file = mapped_file_get(live->t.files, fd, STR("x"), STR("x"));

		expect(file && mapped_file_is_elf(file));
		expect_eq(mapped_rows_read(&objects, file, &options, no_row, NULL, NULL), 0);
		mapped_file_release(file);
	}
	close(fd);
	live_free(live);
}
