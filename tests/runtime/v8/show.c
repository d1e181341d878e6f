/* SPDX-License-Identifier: Apache-2.0 */
/* Stops a living node again and again and prints its stacks as walked natively: for those who work
 * on the walk. show NODE-BINARY PID SAMPLES */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "native.h"

#include "v8/names.h"

static struct v8_binary binary;
static struct names names;
static uint64_t mapped_bias;
static bool quiet_all;

static void add(struct v8_range *r, uint32_t max, uint64_t from, uint64_t to)
{
	for (uint32_t i = 0; i < max; i++)
		if (r[i].from == 0) {
			r[i] = (struct v8_range){from, to};
			return;
		}
}

/* Where the binary's builtins and memory for code are. */
static void read_maps(int pid, const char *file)
{
	char path[64], line[512], name[400];
	unsigned long from, to, offset, region = 0, region_to = 0;
	char mode[8];
	bool exec = false;
	FILE *f;

	memset(&native.process, 0, sizeof(native.process));
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		name[0] = '\0';
		if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %399s", &from, &to, mode, &offset, name) < 4)
			continue;
		if (name[0] != '/' && name[0] != '[') {
			if (from != region_to) {
				if (exec)
					add(native.process.code, V8_RANGES, region, region_to);
				region = from;
				exec = false;
			}
			exec |= mode[2] == 'x';
		} else if (strstr(name, file)) {
			uint64_t at = offset + mapped_bias;
			if (mode[2] == 'x' && at < binary.blob + binary.blob_bytes &&
			    at + (to - from) > binary.blob) {
				uint64_t start = from + (binary.blob - at);
				if (binary.blob < at)
					start = from - (at - binary.blob);
				add(native.process.blobs, V8_BLOBS, start, start + binary.blob_bytes);
				add(native.process.handlers, V8_BLOBS, start + binary.handlers_from,
				    start + binary.handlers_to);
			}
			/* A copy of the builtins in the heap's code does not end a region. */
			if (from != region_to) {
				if (exec)
					add(native.process.code, V8_RANGES, region, region_to);
				exec = false;
				region = from;
			}
		} else {
			if (exec)
				add(native.process.code, V8_RANGES, region, region_to);
			exec = false;
			region = from;
		}
		region_to = to;
	}
	if (f)
		fclose(f);
}

static void registers(const struct user_regs_struct *r)
{
	struct andiron_walk *w = &native.walk;

	memset(w, 0, sizeof(*w));
	w->pc = r->rip;
	w->exact = 1;
	w->known = 0xffff;
	w->slot = 1;
	w->regs[0] = r->rax, w->regs[1] = r->rdx, w->regs[2] = r->rcx, w->regs[3] = r->rbx;
	w->regs[4] = r->rsi, w->regs[5] = r->rdi, w->regs[6] = r->rbp, w->regs[7] = r->rsp;
	w->regs[8] = r->r8, w->regs[9] = r->r9, w->regs[10] = r->r10;
}

static unsigned n_all, n_v8, n_bad, n_line, n_frames, n_invalid;

static void print_frames(void)
{
	struct andiron_walk *w = &native.walk;

	for (uint32_t i = 0; i + 1 < w->n_words; i += 2) {
		uint64_t what = w->frames[i] & 0xffffffffffffffull, where = w->frames[i + 1];
		uint32_t kind = (uint32_t)V8_KIND(what);
		uint64_t number = V8_NUMBER(what);
		struct names_function *f = NULL;
		struct names_frame out[NAMES_FRAMES];
		uint32_t k;

		if (kind != V8_STUB && number >= 1 && number <= native.n_met) {
			struct v8_met *m = &native.met[number - 1];
			names_learn(&names, &m->key, kind == V8_INTERPRETED ? m->bytecode : 0, &f);
			if (kind == V8_COMPILED && where != V8_NOWHERE)
				names_learn_code(&names, where & ~V8_EXACT);
		}
		k = names_resolve(&names, f, kind, kind == V8_STUB ? number : what, where, out, NAMES_FRAMES);
		if (k == 0)
			n_invalid++;
		for (uint32_t j = 0; j < k; j++) {
			if (kind == V8_COMPILED || kind == V8_INTERPRETED) {
				n_frames++;
				n_line += out[j].line != 0;
			}
			if (!quiet_all)
				printf("  %c%s %s (%s:%u from %u)\n", "?ICBS"[kind], j + 1 < k ? "i" : "",
				       out[j].function, out[j].file, out[j].line, out[j].first_line);
		}
	}
}

int main(int argc, char **argv)
{
	int fd, pid, status;
	struct v8_memory memory;

	if (argc < 4)
		return 2;
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	pid = atoi(argv[2]);
	quiet_all = argc > 4;
	if (binary_read(&binary, fd) != 1 || binary.why[0])
		return fprintf(stderr, "not known: %s\n", binary.why), 1;
	mapped_bias = argc > 5 ? strtoull(argv[5], NULL, 16) : 0x400000;
	memory_init(&memory, (uint32_t)pid);
	native.memory = &memory;
	native.layout = binary.layout;
	names_init(&names, &memory, &binary);
	if (ptrace(PTRACE_SEIZE, pid, 0, 0) != 0)
		return perror("seize"), 1;
	for (int i = 0, n = atoi(argv[3]); i < n; i++) {
		struct user_regs_struct r;
		struct timespec t = {0, 1000000 + random() % 3000000};

		nanosleep(&t, NULL);
		ptrace(PTRACE_INTERRUPT, pid, 0, 0);
		if (waitpid(pid, &status, 0) != pid || WIFEXITED(status))
			break;
		ptrace(PTRACE_GETREGS, pid, 0, &r);
		read_maps(pid, strrchr(argv[1], '/'));
		memcpy(names.blobs, native.process.blobs, sizeof(names.blobs));
		n_all++;
		if (v8_where(&native.process, r.rip) != V8_IN_NONE) {
			registers(&r);
			n_v8++;
			v8_walk(0, &native.walk);
			if (native.walk.end) {
				n_bad++;
				printf("BAD rip %llx in %u rsp %llx rbp %llx at fp %llx pc %llx\n", r.rip,
				       v8_where(&native.process, r.rip), r.rsp, r.rbp,
				       (unsigned long long)native.scratch.fp, (unsigned long long)native.scratch.pc);
			} else if (!quiet_all)
				printf("-- rip %llx\n", r.rip);
			print_frames();
		}
		ptrace(PTRACE_CONT, pid, 0, 0);
	}
	printf("samples %u in V8 %u bad %u invalid %u frames %u with line %u, names %lu bytes\n", n_all, n_v8, n_bad, n_invalid, n_frames, n_line, names.bytes);
	names_fini(&names);
	binary_fini(&binary);
	return 0;
}
