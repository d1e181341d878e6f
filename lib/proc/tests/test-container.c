/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of container.h: a table of what runtimes create, and noise. */
#include "testing/test.h"
#include "proc/container.h"
#include "proc/hierarchy.h"

#include <stdlib.h>

#define A16    "0123456789abcdef"
#define ID     A16 A16 A16 A16
#define ID2    "fedcba9876543210" A16 A16 A16
#define TASK   A16 "fedcba9876543210"
#define DASHED "1b2c3d4e-5f60-7182-93a4-b5c6d7e8f901"
#define UNDER  "1b2c3d4e_5f60_7182_93a4_b5c6d7e8f901"

static const struct {
	const char *what, *text, *id;
} shapes[] = {
	{"v1, cgroupfs driver", "12:pids:/kubepods/besteffort/pod" DASHED "/" ID "\n", ID},
	{"v1, guaranteed", "12:pids:/kubepods/pod" DASHED "/" ID "\n", ID},
	{"v1, cri-o with cgroupfs", "3:cpu:/kubepods/burstable/pod" DASHED "/crio-" ID "\n", ID},
	{"v2, containerd with systemd",
	 "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UNDER
	 ".slice/cri-containerd-" ID ".scope\n",
	 ID},
	{"v2, guaranteed, cri-o",
	 "0::/kubepods.slice/kubepods-pod" UNDER ".slice/crio-" ID ".scope\n", ID},
	{"cri-o, leaf below its scope",
	 "0::/kubepods.slice/kubepods-pod" UNDER ".slice/crio-" ID ".scope/container\n", ID},
	{"driver mismatch, colon form",
	 "0::/system.slice/containerd.service/kubepods-besteffort-pod" UNDER
	 ".slice:cri-containerd:" ID "\n",
	 ID},
	{"docker", "0::/docker/" ID "\n", ID},
	{"docker with systemd", "0::/system.slice/docker-" ID ".scope\n", ID},
	{"docker, init below", "0::/system.slice/docker-" ID ".scope/init\n", ID},
	{"podman", "0::/machine.slice/libpod-" ID ".scope/container\n", ID},
	{"podman, rootless",
	 "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope\n", ID},
	{"podman's monitor", "0::/machine.slice/libpod-conmon-" ID ".scope\n", NULL},
	{"cri-o's monitor",
	 "0::/kubepods.slice/kubepods-pod" UNDER ".slice/crio-conmon-" ID ".scope\n", NULL},
	{"monitor inside a node that is a container",
	 "0::/docker/" ID "/kubelet.slice/crio-conmon-" ID2 ".scope\n", ID},
	{"mount unit", "0::/system.slice/var-lib-docker-" ID ".mount\n", NULL},
	{"kind, systemd",
	 "0::/docker/" ID "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" UNDER
	 ".slice/cri-containerd-" ID2 ".scope\n",
	 ID2},
	{"kind, cgroupfs",
	 "11:memory:/docker/" ID "/kubelet/kubepods/besteffort/pod" DASHED "/" ID2 "\n", ID2},
	{"kind, the node's own process", "0::/docker/" ID "/system.slice/kubelet.service\n", ID},
	{"ECS on instances", "5:memory:/ecs/" TASK "/" ID "\n", ID},
	{"ECS on Fargate", "0::/ecs/" TASK "/" TASK "-1234567890\n", TASK "-1234567890"},
	{"static pod's hash is no container", "0::/kubepods/pod" TASK "\n", NULL},
	{"relative view", "0::/../../kubepods/pod" DASHED "/" ID "\n", ID},
	{"hidden view", "0::/\n", NULL},
	{"hybrid: no id in the first lines",
	 "13:misc:/\n12:memory:/docker/" ID "\n1:name=systemd:/docker/" ID "\n0::/\n", ID},
	{"no newline at the end", "0::/docker/" ID, ID},
	{"a service", "0::/system.slice/nginx.service\n", NULL},
	{"upper case is no id", "0::/docker/ABCDEF" A16 A16 A16 "0123456789\n", NULL},
	{"one digit too few", "0::/docker/123456789abcdef" A16 A16 A16 "\n", NULL},
	{"one digit too many", "0::/docker/0" ID "\n", NULL},
	{"task without a number", "0::/ecs/" TASK "-\n", NULL},
	{"task with too long a number", "0::/ecs/" TASK "-123456789012345678901\n", NULL},
	{"nothing", "", NULL},
	{"no path", "0:", NULL},
};

/* Every shape that a runtime gives its cgroups leads to the container's id, and nothing else does.
 */
TEST(shapes)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		char id[CONTAINER_ID_MAX] = "untouched";
		bool found = container_id(str_of(shapes[i].text), id);

		if (found != !!shapes[i].id ||
		    strcmp(id, shapes[i].id ? shapes[i].id : "untouched") != 0)
			test_fail(__FILE__, __LINE__, "%s: %d \"%s\"", shapes[i].what, found, id);
	}
}

/* A path as such, for who has it from elsewhere, gives the same. */
TEST(paths)
{
	char id[CONTAINER_ID_MAX];

	expect(container_id_of_path(STR("/docker/" ID), id) && !strcmp(id, ID));
	expect(container_id_of_path(STR(ID), id) && !strcmp(id, ID));
	expect(!container_id_of_path(STR("/"), id));
	expect(!container_id_of_path(STR_NULL, id));
}

/* The unit is systemd's, system or user, and never a slice. */
TEST(units)
{
	static const struct {
		const char *text, *unit;
	} table[] = {
		{"0::/system.slice/nginx.service\n", "nginx.service"},
		{"0::/user.slice/user-1000.slice/user@1000.service/app.slice/web.service\n",
		 "web.service"},
		{"0::/user.slice/user-1000.slice/user@1000.service/app.slice/x-1.scope\n",
		 "x-1.scope"},
		{"0::/user.slice/user-1000.slice/session-2.scope\n", "session-2.scope"},
		{"0::/system.slice/app.service/workers/3\n", "app.service"},
		{"9:memory:/system.slice/no.service\n"
		 "1:name=systemd:/system.slice/yes.service\n0::/\n",
		 "yes.service"},
		{"9:memory:/system.slice/no.service\n1:name=systemd:/\n0::/init.scope\n",
		 "init.scope"},
		{"0::/system.slice\n", ""},
		{"0::/.service\n", ""},
		{"0::/\n", ""},
		{"", ""},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		expect_str(systemd_unit(str_of(table[i].text)), table[i].unit);
}

/* Containers are looked for in a v1 controller where one is mounted, memory before cpu before pids,
 * else in the unified hierarchy. */
TEST(hierarchy)
{
#define HEAD "#subsys_name\thierarchy\tnum_cgroups\tenabled\n"
	expect_eq(proc_hierarchy(STR(HEAD "cpu\t0\t9\t1\nmemory\t0\t9\t1\n")), CGROUP_HIERARCHY_V2);
	expect_eq(proc_hierarchy(STR(HEAD "cpu\t1\t9\t1\nmemory\t4\t9\t1\n")),
		  CGROUP_HIERARCHY_MEMORY);
	expect_eq(proc_hierarchy(STR(HEAD "pids\t8\t1\t1\ncpu\t1\t9\t1\nmemory\t0\t9\t1\n")),
		  CGROUP_HIERARCHY_CPU);
	expect_eq(proc_hierarchy(STR(HEAD "cpuacct\t1\t9\t1\npids\t2\t9\t1")),
		  CGROUP_HIERARCHY_PIDS);
	expect_eq(proc_hierarchy(STR("memory\tx")), CGROUP_HIERARCHY_V2);
	expect_eq(proc_hierarchy(STR_NULL), CGROUP_HIERARCHY_V2);
}

/* Text that a stranger made is read within its bounds; what comes out is an id by its grammar and
 * stood in the text. */
TEST(noise)
{
	static const char alphabet[] = "0123456789abcdef-/:.\n\0scopenm";

	srand(7);
	for (int round = 0; round < 20000; round++) {
		const char *seed = shapes[(size_t)rand() % (sizeof(shapes) / sizeof(*shapes))].text;
		size_t n = strlen(seed);
		char *text = malloc(n + 1), id[CONTAINER_ID_MAX] = "";
		struct str unit;

		expect(text != NULL);
		memcpy(text, seed, n);
		for (int edits = rand() % 4; n && edits > 0; edits--)
			text[(size_t)rand() % n] =
				alphabet[(size_t)rand() % (sizeof(alphabet) - 1)];
		n = n ? (size_t)rand() % (n + 1) : 0;
		text = realloc(text, n ? n : 1); /* so that ASan sees each byte beyond */
		expect(text != NULL);
		if (container_id((struct str){text, n}, id)) {
			expect(strlen(id) == 64 || (strlen(id) > 33 && id[32] == '-'));
			expect(str_search((struct str){text, n}, str_of(id)) < n);
		}
		unit = systemd_unit((struct str){text, n});
		expect(!unit.n || (unit.p >= text && unit.p + unit.n <= text + n));
		free(text);
	}
}
