/* SPDX-License-Identifier: Apache-2.0 */
/* Records states of a living node: stops its main thread again and again, walks it natively where
 * it stands in V8's code, and writes down registers and the memory that was read.
 *
 *     record BINARY PID STATES FILE
 *
 * Of sources only the ends of lines are kept: a test needs no more. */
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#define SOURCE 4096 /* longer reads are of a script's source */

static struct v8_binary binary;
static struct state_range ranges[STATE_RANGES];
static uint8_t bytes[STATE_BYTES];
static uint32_t n_ranges, n_bytes;

static bool is_recorded(uint64_t address, size_t n)
{
	for (uint32_t i = 0; i < n_ranges; i++)
		if (address >= ranges[i].start && address + n <= ranges[i].start + ranges[i].n)
			return true;
	return false;
}

static int target;

static void record_refresh(void *context)
{
}

static bool record_read(void *context, uint64_t address, void *ret, size_t n)
{
	struct iovec local = {ret, n}, remote = {(void *)(uintptr_t)address, n};
	uint8_t *at = bytes + n_bytes;

	if (process_vm_readv(target, &local, 1, &remote, 1, 0) != (ssize_t)n)
		return false;
	if (is_recorded(address, n) || n_ranges == STATE_RANGES || n > STATE_BYTES - n_bytes)
		return true;
	ranges[n_ranges++] = (struct state_range){address, (uint32_t)n, n_bytes};
	memcpy(at, ret, n);
	for (size_t i = 0; n > SOURCE && i < n; i++)
		if (at[i] != '\n' && at[i] != '\r' && at[i] != 0)
			at[i] = ' ';
	n_bytes += (uint32_t)n;
	return true;
}

/* The executable mappings, as a sampler would give them; the binary's object is 1. */
static uint64_t read_mappings(int pid, const char *file, struct andiron_runtime_mapping *ret,
			      uint64_t max)
{
	char path[64], line[600], name[400];
	unsigned long from, to, offset;
	uint64_t n = 0;
	char mode[8];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	while (f && n < max && fgets(line, sizeof(line), f)) {
		name[0] = '\0';
		if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %399s", &from, &to, mode, &offset, name) <
			    4 ||
		    mode[2] != 'x')
			continue;
		ret[n] = (struct andiron_runtime_mapping){from, to, from, 0};
		if (name[0] == '/' && strstr(name, file)) {
			/* Official binaries are not relocated: offsets follow the first segment. */
			ret[n].object = 1;
			ret[n].address = offset + 0x400000;
		} else if (name[0] != '\0') {
			continue;
		}
		n++;
	}
	if (f)
		fclose(f);
	return n;
}

static void head_of(struct state_head *h, const struct user_regs_struct *r)
{
	h->pc = r->rip;
	h->regs[0] = r->rax;
	h->regs[1] = r->rdx;
	h->regs[2] = r->rcx;
	h->regs[3] = r->rbx;
	h->regs[4] = r->rsi;
	h->regs[5] = r->rdi;
	h->regs[6] = r->rbp;
	h->regs[7] = r->rsp;
	h->regs[8] = r->r8;
	h->regs[9] = r->r9;
	h->regs[10] = r->r10;
}

/* Appends one state, if the thread stands in V8's code. */
static bool record_state(int pid, const char *file, FILE *out)
{
	static struct andiron_runtime_mapping mappings[256];
	static char text[STATE_TEXT];
	struct v8_memory memory = {record_read, record_refresh, NULL, ~0ull};
	struct state_head head = {0};
	struct user_regs_struct r;
	uint64_t n;

	if (ptrace(PTRACE_GETREGS, pid, 0, &r) != 0)
		return false;
	head_of(&head, &r);
	n = read_mappings(pid, file, mappings, 256);
	mappings_update(&head.mappings, &binary, 1, mappings, n);
	mappings_read_regions(&head.mappings, (uint32_t)pid, &binary, 1, mappings, n);
	mappings_add_rest(&head.mappings, mappings, n);
	mappings_segments(&head.mappings, &native.scratch.process);
	native.scratch.layout = binary.layout;
	if (v8_where(&native.scratch, r.rip) == V8_IN_NONE)
		return false;
	target = pid;
	n_ranges = n_bytes = 0;
	if (!state_walk(&binary, &head, &memory, text, sizeof(text)))
		fprintf(stderr, "a walk gave up at %llx\n%s", r.rip, text);
	head.n_ranges = n_ranges;
	head.n_bytes = n_bytes;
	head.n_text = (uint32_t)strlen(text);
	fwrite(&head, sizeof(head), 1, out);
	fwrite(ranges, sizeof(*ranges), n_ranges, out);
	fwrite(bytes, 1, n_bytes, out);
	fwrite(text, 1, head.n_text, out);
	return true;
}

static int record_all(int pid, const char *file, uint32_t n_states, FILE *out)
{
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC), status;
	uint32_t done = 0;

	if (ptrace(PTRACE_SEIZE, pid, 0, 0) != 0)
		return -errno;
	while (done < n_states) {
		struct itimerspec t = {.it_value = {0, 1000000 + random() % 5000000}};
		uint64_t n;

		/* It runs on for some milliseconds. */
		if (timerfd_settime(timer, 0, &t, NULL) != 0 || read(timer, &n, sizeof(n)) < 0)
			return -errno;
		ptrace(PTRACE_INTERRUPT, pid, 0, 0);
		if (waitpid(pid, &status, 0) != pid || WIFEXITED(status))
			return -ESRCH;
		done += record_state(pid, file, out);
		ptrace(PTRACE_CONT, pid, 0, 0);
	}
	return 0;
}

static int write_compressed(const char *path, const char *data, size_t n)
{
	size_t max = ZSTD_compressBound(n);
	char *packed = malloc(max);
	size_t size = packed ? ZSTD_compress(packed, max, data, n, 19) : 0;
	FILE *f = fopen(path, "wbe");
	bool written = f && fwrite(packed, 1, size, f) == size;

	if (f)
		fclose(f);
	free(packed);
	return written ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct state_file head = {.magic = STATE_MAGIC};
	char *data = NULL;
	size_t n = 0;
	FILE *out;
	int fd, r;

	if (argc != 5)
		return 2;
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (binary_read(&binary, fd) != 1 || binary.why[0]) {
		fprintf(stderr, "not known: %s\n", binary.why);
		return 1;
	}
	head.n_states = (uint32_t)strtoul(argv[3], NULL, 10);
	head.n_sizes = binary.n_sizes;
	head.binary = binary;
	head.binary.builtins = NULL;
	head.binary.names = NULL;
	head.binary.sizes = NULL;
	head.binary.n_builtins = 0;
	/* As the reader has it: builtins without names. */
	binary.n_builtins = 0;
	out = open_memstream(&data, &n);
	fwrite(&head, sizeof(head), 1, out);
	if (binary.sizes)
		fwrite(binary.sizes, 3, binary.n_sizes, out);
	r = record_all((int)strtoul(argv[2], NULL, 10), strrchr(argv[1], '/'), head.n_states, out);
	fclose(out);
	if (r == 0)
		r = write_compressed(argv[4], data, n);
	free(data);
	binary_fini(&binary);
	return r != 0;
}
