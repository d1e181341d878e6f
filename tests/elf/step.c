/* SPDX-License-Identifier: Apache-2.0 */
/* step N PROGRAM [ARGUMENT…]: runs a static x86-64 program one instruction at a time and unwinds
 * its first thread by the program's rows at each of the first N, from registers and memory as they
 * are. Every stack must reach the outermost frame: so prologues, epilogues and whatever is between
 * are all seen. Prints the figures, and where it did not.
 *
 * Instructions elsewhere (the vDSO) are passed over, and counted. */
#include "base/check.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "unwind/rows.h"
#include "bpfwire/unwind-tables.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#define FRAMES_MAX 4096
#define PRINT_MAX  10

struct rows {
	VEC(struct elf_row) list;
	uint64_t low, high; /* of the program's code, as it is loaded */
};

struct figures {
	uint64_t stacks, whole, elsewhere, frames;
	int printed;
};

static int keep(void *context, const struct elf_row *row)
{
	struct rows *rows = context;

	return vec_push(&rows->list, *row) ? 0 : -ENOMEM;
}

static int load(struct rows *rows, const char *path)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf_file f = ELF_FILE_NULL;
	struct error err = ERROR_NULL;
	struct elf_rows_stats stats;
	int r = fd < 0 ? -errno : elf_file_open(&f, fd, &err);

	if (r == 0 && (f.type != ET_EXEC || f.machine != EM_X86_64))
		r = -ENOTSUP;
	if (r == 0)
		r = elf_rows_read(&f, NULL, keep, rows, &stats, &err);
	for (size_t i = 0; r == 0 && i < f.n_segments; i++)
		if (f.segments[i].p_type == PT_LOAD && (f.segments[i].p_flags & PF_X)) {
			rows->low = f.segments[i].p_vaddr;
			rows->high = f.segments[i].p_vaddr + f.segments[i].p_memsz;
		}
	elf_file_close(&f);
	if (r < 0)
		fprintf(stderr, "%s: %s\n", path, err.code ? err.text : strerror(-r));
	return r;
}

static uint64_t rule_at(const struct rows *rows, uint64_t pc)
{
	size_t low = 0, n = rows->list.n;

	while (n) {
		size_t half = n / 2;

		if (rows->list.p[low + half].address <= pc) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return low && pc >= rows->low && pc < rows->high ? rows->list.p[low - 1].rule : 0;
}

struct walk {
	pid_t pid;
	uint64_t pc, regs[16]; /* by DWARF's numbers */
	bool exact;            /* pc is no return address */
	bool lost;             /* memory that is not there */
};

static uint64_t word_at(struct walk *w, uint64_t address)
{
	uint64_t value = 0;
	struct iovec to = {&value, 8}, from = {(void *)(uintptr_t)address, 8};

	if (process_vm_readv(w->pid, &to, 1, &from, 1, 0) != 8)
		w->lost = true;
	return value;
}

static void begin(struct walk *w, pid_t pid)
{
	struct user_regs_struct r;

	check(ptrace(PTRACE_GETREGS, pid, NULL, &r) == 0);
	*w = (struct walk){
		.pid = pid,
		.pc = r.rip,
		.exact = true,
		.regs = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10,
			 r.r11, r.r12, r.r13, r.r14, r.r15},
	};
}

static void leave_signal(struct walk *w, uint64_t at)
{
	w->pc = word_at(w, at + 8 * UNWIND_SIGNAL_X86_RIP);
	w->regs[UNWIND_X86_RBP] = word_at(w, at + 8 * UNWIND_SIGNAL_X86_RBP);
	w->regs[UNWIND_X86_RSP] = word_at(w, at + 8 * UNWIND_SIGNAL_X86_RSP);
	w->exact = true;
}

static void leave_frame(struct walk *w, uint64_t rule)
{
	uint64_t at = w->regs[unwind_rule_base(rule) & 15] + (uint64_t)unwind_rule_offset(rule);
	uint64_t from, fp = w->regs[UNWIND_X86_RBP];
	uint32_t kind = unwind_rule_cfa(rule);

	if (kind == UNWIND_CFA_SIGNAL) {
		leave_signal(w, at);
		return;
	}
	if (kind == UNWIND_CFA_DEREF)
		at = word_at(w, at) + (uint64_t)unwind_rule_extra(rule);
	if (kind == UNWIND_CFA_PLT && (int64_t)(w->pc & 15) >= unwind_rule_extra(rule))
		at += 8;
	from = unwind_rule_frame(rule) ? fp : at;
	if (unwind_rule_fp(rule) != UNWIND_FP_SAME)
		w->regs[UNWIND_X86_RBP] = word_at(w, from + 8 * (uint64_t)unwind_rule_fp(rule));
	w->pc = unwind_rule_ra(rule) == UNWIND_RA_REGISTER ? w->regs[unwind_rule_other(rule) & 15]
							   : word_at(w, at - 8);
	w->regs[UNWIND_X86_RSP] = at;
	w->exact = false;
}

/* How the stack of a stopped process ends; NULL: at an outermost frame. */
static const char *unwind(const struct rows *rows, pid_t pid, struct figures *f)
{
	struct walk w;

	begin(&w, pid);
	for (int i = 0; i < FRAMES_MAX; i++) {
		uint64_t rule = rule_at(rows, w.exact ? w.pc : w.pc - 1);

		f->frames++;
		if (unwind_rule_cfa(rule) == UNWIND_CFA_END)
			return NULL;
		if (!rule)
			return i ? "a caller without a rule" : "no rule";
		if (unwind_rule_cfa(rule) == UNWIND_CFA_INDEX)
			return "a rule that static programs do not need";
		leave_frame(&w, rule);
		if (w.lost)
			return "memory that is not there";
	}
	return "too many frames";
}

static void look(const struct rows *rows, pid_t pid, struct figures *f)
{
	struct walk w;
	const char *why;

	begin(&w, pid);
	if (w.pc < rows->low || w.pc >= rows->high) {
		f->elsewhere++;
		return;
	}
	f->stacks++;
	why = unwind(rows, pid, f);
	f->whole += why == NULL;
	if (why && f->printed++ < PRINT_MAX)
		printf("# at %#" PRIx64 ": %s\n", w.pc, why);
}

static pid_t start(char **argv)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		dup2(null, STDOUT_FILENO);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execv(argv[0], argv);
		_exit(127);
	}
	check(pid > 0 && waitpid(pid, &status, 0) == pid);
	return WIFSTOPPED(status) ? pid : -1;
}

int main(int argc, char **argv)
{
	struct rows rows = {0};
	struct figures f = {0};
	uint64_t n;
	pid_t pid;
	int status, signal = 0;

	if (argc < 3 || !str_u64(str_of(argv[1]), &n))
		return 2;
	if (load(&rows, argv[2]) < 0)
		return 1;
	pid = start(argv + 2);
	if (pid < 0)
		return 1;
	for (uint64_t i = 0; i < n; i++) {
		look(&rows, pid, &f);
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, (void *)(intptr_t)signal) < 0 ||
		    waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
			break;
		signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
	}
	kill(pid, SIGKILL);
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", f.stacks, f.whole, f.frames,
	       f.elsewhere);
	vec_free(&rows.list);
	return f.stacks == 0;
}
