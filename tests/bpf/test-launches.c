/* SPDX-License-Identifier: Apache-2.0 */
/* Programs whose execs are reported, on this kernel. */
#include "ebpf/kernel/session.h"

#include "bpfwire/unwind-tables.h"
#include "proc/process.h"
#include "testing/test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct fixture {
	struct session *session;
	struct proc_info info;
	int proc;
	struct sampler_process last; /* reported by exec, of `awaited` */
	uint32_t awaited, n_reports;
};

/* A shell that becomes `cat` with its second line. Each line comes back. */
struct child {
	struct sampler_process_key key; /* its start in clock ticks */
	pid_t pid;
	int in, out;
};

static void on_record(void *context, const void *record, size_t size)
{
	struct fixture *f = context;
	struct sampler_process process = {0};

	memcpy(&process, record, size < sizeof(process) ? size : sizeof(process));
	if (process.type != SAMPLER_RECORD_PROCESS || process.key.tgid != f->awaited ||
	    !(process.flags & SAMPLER_PROCESS_LAUNCHED))
		return;
	f->last = process;
	f->n_reports++;
}

static void begin(struct fixture *f)
{
	struct session_options options = {.rate_hz = 97, .interval_ns = 1000000000};
	struct error err = ERROR_NULL;
	int r;

	if (geteuid() != 0)
		test_skip("BPF needs root; run this suite as root");
	*f = (struct fixture){.proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	r = session_open(&options, on_record, f, &f->session, &err);
	if (r == -EPERM || r == -EACCES || r == -ENOTSUP)
		test_skip(err.text);
	expect_eq(r, 0);
	session_configure(f->session, &(struct session_samples){.mode = SAMPLER_ALL});
	expect_eq(session_report_launches(f->session), 0);
}

static void end(struct fixture *f)
{
	session_close(f->session);
	proc_info_free(&f->info);
	close(f->proc);
}

static uint64_t generation_of(struct fixture *f, pid_t pid)
{
	struct proc_info *i = &f->info;

	expect_eq(proc_read(f->proc, (uint32_t)pid, 0, i), 0);
	return unwind_generation(i->start_code, i->arg_start, i->start_stack);
}

static void say_line(const struct child *c)
{
	char line[2] = "x\n";

	expect_eq(write(c->in, line, 2), 2);
	expect_eq(read(c->out, line, 1) + read(c->out, line, 1), 2);
}

static struct child start_shell(struct fixture *f)
{
	struct child c;
	int in[2], out[2];

	expect(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
	c.pid = fork();
	if (c.pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		execlp("sh", "sh", "-c", "read a; echo $a; read a; echo $a; exec cat",
		       (char *)NULL);
		_exit(127);
	}
	expect(c.pid > 0);
	close(in[0]);
	close(out[1]);
	c.in = in[1];
	c.out = out[0];
	say_line(&c);
	generation_of(f, c.pid);
	c.key = (struct sampler_process_key){.start_ns = f->info.start_ns,
					     .tgid = (uint32_t)c.pid};
	return c;
}

static void become_cat(const struct child *c)
{
	say_line(c);
	say_line(c); /* cat's own answer */
}

static void end_child(const struct child *c)
{
	close(c->in);
	close(c->out);
	expect_eq(waitpid(c->pid, NULL, 0), c->pid);
}

/* Starts one and has it become cat; how often its execs were reported. */
static uint32_t count_reports(struct fixture *f, struct child *ret)
{
	*ret = start_shell(f);
	f->awaited = (uint32_t)ret->pid;
	f->n_reports = 0;
	become_cat(ret);
	expect_eq(session_drain(f->session, INT64_MAX), 0);
	return f->n_reports;
}

/* What a process executes after its code was claimed is no program of a language: an interpreter
 * becomes a command, or a child of it does. To watch that would cost at each exec of it. */
TEST(later_programs_are_not_watched)
{
	struct child first, shell, other;
	struct fixture f;

	begin(&f);
	first = start_shell(&f);
	expect_eq(count_reports(&f, &other), 0);
	end_child(&other);
	/* Its exec is not known by such a key, as that of an older one is not. */
	session_watch_program(f.session, &first.key, generation_of(&f, first.pid));
	expect_eq(count_reports(&f, &shell), 1);
	session_watch_program(f.session, &f.last.key, f.last.generation);
	expect_eq(count_reports(&f, &other), 1);
	end_child(&other);
	end_child(&first);
	end_child(&shell);
	end(&f);
}

/* What it has still is watched. */
TEST(programs_are_watched)
{
	struct child first, shell, other;
	struct fixture f;

	begin(&f);
	first = start_shell(&f);
	session_watch_program(f.session, &first.key, generation_of(&f, first.pid));
	expect_eq(count_reports(&f, &shell), 1);
	session_watch_program(f.session, &f.last.key, generation_of(&f, shell.pid));
	expect_eq(count_reports(&f, &other), 2);
	end_child(&other);
	end_child(&shell);
	end_child(&first);
	end(&f);
}
