/* SPDX-License-Identifier: Apache-2.0 */
/* Stops threads of a JVM wherever they are in Java code, walks them and prints what is found:
 *
 *   probe PID STOPS [FOLDER]    FOLDER: each walk is written there as a recording
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

#include "jvm/elf-symbols.h"
#include "jvm/jvm-layout.h"
#include "jvm/names.h"
#include "jvm/process-memory.h"
#include "recording.h"
#include "jvm/vm-structs.h"

static int memory = -1;
static struct recording recording;

static int memory_at(void *to, uint32_t n, uint64_t address)
{
	if (memory_read(memory, to, n, address) != 0)
		return -1;
	recording_add(&recording, address, to, n);
	return 0;
}

static int name_of(void *self, const struct jvm_name_key *key, struct jvm_name *ret)
{
	const struct jvm_name *name = kept_name(key);

	if (name)
		*ret = *name;
	return name ? 0 : -ENOENT;
}

static int site_of(void *self, const struct jvm_site_key *key, struct jvm_site *ret)
{
	const struct jvm_site *site = kept_site(key);

	if (site)
		*ret = *site;
	return site ? 0 : -ENOENT;
}

static struct names *names;

static void method_print(uint64_t identity, uint32_t bci, char kind)
{
	int excluded = native_state.process.at.flags & JVM_NO_ZERO_BYTES;
	struct name_text text;

	if (names_method(names, native_state.process.id, identity, bci, excluded, &text) != 0)
		printf(" ?:%c", kind);
	else
		printf(" %.*s:%u:%c", (int)text.n_function, text.function, text.line, kind);
}

static void frame_print(uint64_t what, uint64_t where)
{
	struct jvm_site_key key = {native_state.process.id, (uint32_t)(where >> 32),
				   JVM_ADDRESS(what), (uint32_t)where, 0};
	const struct jvm_site *site;

	switch (JVM_KIND(what)) {
	case JVM_FRAME_INTERPRETED:
		method_print(where & 0xffffffffffff, (uint32_t)(where >> 48), 'i');
		break;
	case JVM_FRAME_COMPILED:
		site = names_site(names, &key);
		for (uint32_t i = 0; site && i < site->n; i++)
			method_print(site->methods[i] >> 16, (uint32_t)(site->methods[i] & 0xffff),
				     i + 1 < site->n ? 'n' : 'c');
		if (!site)
			printf(" ?site");
		break;
	case JVM_FRAME_STUB:
		method_print(where, JVM_BCI_NATIVE, 's');
		break;
	default:
		printf(" [%u]", (unsigned)JVM_ADDRESS(what));
	}
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

static const char *attach(pid_t pid, struct jvm_process *ret)
{
	static char text[128];
	uint64_t addresses[VM_SYMBOLS], bias;
	struct vm_structs vm;
	char path[128] = "";
	const char *missing;
	uint32_t major = 8;
	int fd, error;

	memset(ret, 0, sizeof(*ret));
	memory = memory_open((uint32_t)pid);
	bias = mapping_bias(pid, path, sizeof(path));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (memory < 0 || fd < 0)
		return "cannot open";
	if (elf_symbols_find(fd, vm_symbols, VM_SYMBOLS, addresses) < 0)
		return "no symbols";
	close(fd);
	for (int i = 0; i < VM_SYMBOLS; i++)
		addresses[i] += bias;
	error = vm_structs_read(memory, addresses, &vm);
	if (error != 0) {
		snprintf(text, sizeof(text), "tables: %s", strerror(-error));
		return text;
	}
	if (vm.values[VM_CACHE_HEAPS] != VM_ABSENT)
		major = memory_word32(memory, vm.values[VM_MAJOR]);
	missing = layout_offsets(&vm, major, &ret->at);
	if (missing)
		return missing;
	error = layout_code(memory, &vm, ret);
	if (error != 0)
		return "not set up";
	ret->id = 1;
	ret->known = 1;
	memory_text(memory, text, sizeof(text), memory_word(memory, vm.values[VM_RELEASE]));
	fprintf(stderr, "HotSpot %s (%u): %u heaps, %u entries, %u exits\n", text, major,
		ret->n_heaps, ret->n_entries, ret->n_exits);
	return NULL;
}

static struct counts {
	unsigned whole, lost, words, kinds[5];
} counts;

static void stack_print(const struct user_regs_struct *r, const char *folder)
{
	struct andiron_walk *w = &native_walk;

	counts.whole += w->end == 0;
	counts.lost += w->end != 0;
	printf("%s %llx", w->end == 0 ? "whole" : "lost", (unsigned long long)r->rip);
	for (uint32_t i = 0; i + 1 < w->n_words; i += 2) {
		counts.kinds[JVM_KIND(w->frames[i]) % 5]++;
		frame_print(w->frames[i], w->frames[i + 1]);
	}
	if (w->end != 0) {
		printf(" | at %#" PRIx64 " sp %#" PRIx64 " fp %#" PRIx64, (uint64_t)w->pc,
		       (uint64_t)w->regs[JVM_SP], (uint64_t)w->regs[JVM_FP]);
		if (w->exact)
			printf(" rax %llx rbx %llx r13 %llx rsp %llx", r->rax, r->rbx, r->r13,
			       r->rsp);
		if (memory_read(memory, native_state.bytes, 48, w->pc - 24) == 0) {
			native_state.method = r->rbx;
			if (w->exact)
				printf(" rbx is %s method", jvm_method_know(0) == 0 ? "a" : "no");
			{
				__u64 f[10];
				memory_read(memory, f, 80, w->regs[JVM_FP] - 64);
				printf(" frame");
				for (int i = 0; i < 10; i++)
					printf(" %llx", f[i]);
				native_state.method = f[5];
				printf(" method is %s;", jvm_method_know(0) == 0 ? "a" : "no");
				printf(" code size %u at %llx", native_state.bytecode_size,
				       native_state.bytecode);
			}
			printf(" stack");
			for (int i = 0; i < 6; i++)
				printf(" %llx", word_at(w->regs[JVM_SP] + 8ull * (uint64_t)i));
			printf(" interp %llx-%llx", native_state.process.interpreter,
			       native_state.process.interpreter_limit);
			memory_read(memory, native_state.bytes, 48, w->pc - 24);
			printf(" code");
			for (int i = 0; i < 48; i++)
				printf(i == 24 ? " | %02x" : " %02x", native_state.bytes[i]);
		}
	}
	printf("\n");
	if (folder)
		recording_write(&recording, folder, &native_state.process, w,
				counts.whole + counts.lost);
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
	w->known = 0xffff;
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
	struct names_source source = {NULL, name_of, site_of};
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
	names = names_new(&source);
	n = threads_seize(pid, tids, 256);
	for (int i = 0; i < stops && n > 0; i++) {
		stop_thread(tids[i % n], &process, argc > 3 ? argv[3] : NULL);
		if (i % n == n - 1)
			run_on(200000 + rand() % 1000000);
	}
	fprintf(stderr,
		"%u whole, %u lost; frames: %u interpreted, %u compiled, %u stubs, %u marks\n",
		counts.whole, counts.lost, counts.kinds[1], counts.kinds[2], counts.kinds[3],
		counts.kinds[4]);
	return 0;
}
