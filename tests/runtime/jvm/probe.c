/* SPDX-License-Identifier: Apache-2.0 */
/* Stops threads of a JVM wherever they are in Java code, walks them and prints what is found:
 *
 *   probe PID STOPS [FOLDER]    FOLDER: each walk is written there as a recording
 *
 * With FORGET in the environment only the stack pointer is known.
 *
 * A line for each stack: "whole" or "lost", and the frames, innermost first. The last line
 * tells how many there were. */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "native-walker.h"

#include "jvm/jvm-layout.h"
#include "jvm/vm-structs.h"
#include "recording.h"
#include "runtime-kit/elf-file.h"

static int memory = -1;
static struct recording recording;

static int memory_at(void *to, uint32_t n, uint64_t address)
{
	if (pread(memory, to, n, (off_t)address) != (ssize_t)n)
		return -1;
	recording_add(&recording, address, to, n);
	return 0;
}

static uint64_t mapping_bias(pid_t pid, char *path, size_t max)
{
	char name[64], line[1024];
	uint64_t start = 0, bias = 0;
	FILE *maps;

	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	maps = fopen(name, "re");
	while (maps && fgets(line, sizeof(line), maps)) {
		const char *file = strchr(line, '/');

		if (!file || !strstr(file, "libjvm.so"))
			continue;
		start = strtoull(line, NULL, 16);
		snprintf(path, max, "/proc/%d/map_files/%.*s", pid, (int)(strchr(line, ' ') - line),
			 line);
		bias = start;
		break;
	}
	if (maps)
		fclose(maps);
	return bias;
}

static int symbols_find(const char *path, uint64_t bias, uint64_t *ret)
{
	static struct elf_file file;
	int fd = open(path, O_RDONLY | O_CLOEXEC), ok = fd >= 0 && elf_open(&file, fd);

	for (int i = 0; i < VM_SYMBOLS && ok; i++) {
		struct elf_symbol symbol;

		ok = elf_dynamic_symbol(&file, vm_symbols[i], &symbol);
		ret[i] = symbol.address + bias;
	}
	if (fd >= 0)
		close(fd);
	return ok ? 0 : -1;
}

static const char *attach(pid_t pid, struct jvm_process *ret)
{
	static char text[128];
	uint64_t addresses[VM_SYMBOLS], bias;
	struct target_memory *m;
	struct vm_structs vm;
	char path[128] = "";
	const char *missing;
	uint32_t major = 8;
	int error;

	memset(ret, 0, sizeof(*ret));
	bias = mapping_bias(pid, path, sizeof(path));
	snprintf(text, sizeof(text), "/proc/%d/mem", pid);
	memory = open(text, O_RDONLY | O_CLOEXEC);
	if (memory < 0 || target_memory_of(target_reader_new(false), dup(memory), &m) != 0)
		return "cannot open";
	if (symbols_find(path, bias, addresses) != 0)
		return "no symbols";
	error = vm_structs_read(m, addresses, NULL, &vm);
	if (error != 0) {
		snprintf(text, sizeof(text), "tables: %s", strerror(-error));
		return text;
	}
	if (vm.values[VM_CACHE_HEAPS] != VM_ABSENT)
		major = target_memory_word32(m, vm.values[VM_MAJOR]);
	missing = layout_offsets(&vm, major, &ret->at);
	if (missing)
		return missing;
	if (layout_code(m, &vm, ret) != 0)
		return "not set up";
	ret->id = ret->seed = 1;
	ret->known = 1;
	target_memory_text(m, target_memory_word(m, vm.values[VM_RELEASE]), text, sizeof(text));
	fprintf(stderr, "HotSpot %s (%u): %u heaps, %u entries, %u exits\n", text, major,
		ret->n_heaps, ret->n_entries, ret->n_exits);
	return NULL;
}

static struct counts {
	unsigned whole, lost;
} counts;

/* What helps to find out why a walk ended. */
static void end_print(const struct user_regs_struct *r)
{
	const struct andiron_walk *w = &native_walk;
	uint8_t code[48] = {0};

	printf(" | at %#" PRIx64 " sp %#" PRIx64 " fp %#" PRIx64, (uint64_t)w->pc,
	       (uint64_t)w->regs[JVM_SP], (uint64_t)w->regs[JVM_FP]);
	if (w->exact)
		printf(" rax %llx rbx %llx r13 %llx", r->rax, r->rbx, r->r13);
	printf(" blob %#" PRIx64 " frame %u complete %u stack", (uint64_t)native_state.blob,
	       native_state.frame_size, native_state.frame_complete);
	for (int i = 0; i < 6; i++)
		printf(" %" PRIx64, (uint64_t)word_at(w->regs[JVM_SP] + 8ull * (uint64_t)i));
	memory_at(code, sizeof(code), w->pc - 24);
	printf(" code");
	for (int i = 0; i < 48; i++)
		printf(i == 24 ? " | %02x" : " %02x", code[i]);
}

static void stack_print(const struct user_regs_struct *r, const char *folder)
{
	struct andiron_walk *w = &native_walk;
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return;
	walk_text(f);
	fclose(f);
	counts.whole += w->end == 0;
	counts.lost += w->end != 0;
	recording.head.end = w->end;
	if (folder)
		recording_write(&recording, folder, &native_state.process, text,
				counts.whole + counts.lost);
	for (size_t i = 0; i < n; i++)
		text[i] = text[i] == ' ' ? '_' : text[i] == '\n' ? ' ' : text[i];
	printf("%s %llx %s", w->end == 0 ? "whole" : "lost", (unsigned long long)r->rip, text);
	if (w->end != 0)
		end_print(r);
	else if (getenv("REGISTERS"))
		printf(" | rsp %llx rbp %llx rax %llx rbx %llx r13 %llx", r->rsp, r->rbp, r->rax,
		       r->rbx, r->r13);
	printf("\n");
	free(text);
}

static int registers_take(pid_t tid, struct user_regs_struct *r)
{
	struct iovec v = {r, sizeof(*r)};

	return ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &v) == 0 ? 0 : -1;
}

static void walk_thread(pid_t tid, const struct jvm_process *process, const char *folder)
{
	struct andiron_walk *w = &native_walk;
	struct user_regs_struct r;

	if (registers_take(tid, &r) != 0)
		return;
	native_state.process = *process;
	if (heap_of(&native_state, r.rip) < 0) {
		if (getenv("NATIVE"))
			printf("native %llx\n", r.rip);
		return;
	}
	memset(w, 0, sizeof(*w));
	w->version = ANDIRON_WALK_VERSION;
	w->pc = r.rip;
	w->exact = 1;
	w->known = getenv("FORGET") ? 1u << JVM_SP : 0xffff;
	memcpy(w->regs,
	       ((__u64[16]){r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9,
			    r.r10, r.r11, r.r12, r.r13, r.r14, r.r15}),
	       16 * sizeof(__u64));
	if (folder)
		kept_clear(); /* all that a walk needs is read in it */
	recording_start(&recording, w);
	walk_all(process);
	stack_print(&r, folder);
}

/* Stops a thread, walks it and lets it run. */
static void stop_thread(pid_t tid, const struct jvm_process *process, const char *folder)
{
	int status;

	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) != 0)
		return;
	if (waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status))
		return;
	if (status >> 16 == PTRACE_EVENT_STOP)
		walk_thread(tid, process, folder);
	ptrace(PTRACE_CONT, tid, 0, status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status));
}

/* Threads that compute, as many as there are. */
static int threads_seize(pid_t pid, pid_t *ret, int max)
{
	char path[64];
	struct dirent *entry;
	int n = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	while (tasks && n < max && (entry = readdir(tasks)) != NULL) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
		char comm[32] = "";
		int fd;

		snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", pid, tid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0) {
			ssize_t got = read(fd, comm, sizeof(comm) - 1);

			comm[got > 0 ? got : 0] = 0;
			close(fd);
		}
		if (strncmp(comm, "java", 4) != 0 && strncmp(comm, "main", 4) != 0 &&
		    strncmp(comm, "load", 4) != 0 && strncmp(comm, "Fork", 4) != 0)
			continue; /* the JVM's own */
		if (tid > 0 && ptrace(PTRACE_SEIZE, tid, 0, 0) == 0)
			ret[n++] = tid;
	}
	if (tasks)
		closedir(tasks);
	return n;
}

/* Lets the threads run to another place. */
static void run_on(long ns)
{
	struct timespec from, now;

	clock_gettime(CLOCK_MONOTONIC, &from);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - from.tv_sec) * 1000000000 + now.tv_nsec - from.tv_nsec < ns);
}

int main(int argc, char **argv)
{
	struct jvm_process process;
	pid_t pid, tids[256];
	const char *error;
	int stops, n;

	if (argc < 3)
		return 2;
	pid = (pid_t)strtol(argv[1], NULL, 10);
	stops = (int)strtol(argv[2], NULL, 10);
	error = attach(pid, &process);
	if (error) {
		fprintf(stderr, "probe: %s\n", error);
		return 1;
	}
	kept_clear();
	n = threads_seize(pid, tids, 256);
	for (int i = 0; i < stops && n > 0; i++) {
		stop_thread(tids[i % n], &process, argc > 3 ? argv[3] : NULL);
		if (i % n == n - 1)
			run_on(200000 + rand() % 1000000);
	}
	fprintf(stderr, "%u whole, %u lost\n", counts.whole, counts.lost);
	return 0;
}
