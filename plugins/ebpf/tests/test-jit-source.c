/* SPDX-License-Identifier: Apache-2.0 */
/* Perf maps of this very process. */
#include "ebpf/processes/jit-source.h"

#include "base/clock.h"
#include "testing/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* A map last written before its process began is of another one, which had the pid. */
TEST(maps_of_former_processes_are_left_alone)
{
	uint32_t own_pid = 0;
	struct jit_source_process self = {
		.dir = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.pid = (uint32_t)getpid(),
		.start_ns = (uint64_t)clock_boot(),
		.own_root = true,
		.own_pid = &own_pid,
	};
	struct timespec times[2];
	char path[64], reopen[128];
	int map, fd;

	snprintf(path, sizeof(path), "/tmp/perf-%u.map", self.pid);
	unlink(path);
	expect(self.dir >= 0 && !jit_source_has_map(&self));
	map = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	expect(map >= 0 && jit_source_has_map(&self));
	fd = jit_source_open(&self, STR(""), reopen, sizeof(reopen));
	expect(fd >= 0);
	expect_str(str_of(reopen), path);
	close(fd);
	times[0] = times[1] = (struct timespec){.tv_sec = clock_real() / NS_PER_SEC - 60};
	expect(futimens(map, times) == 0);
	expect(!jit_source_has_map(&self));
	expect_eq(jit_source_open(&self, STR(""), reopen, sizeof(reopen)), -1);
	self.start_ns -= 120 * (uint64_t)NS_PER_SEC;
	expect(jit_source_has_map(&self));
	close(map);
	unlink(path);
	close(self.dir);
}
