/* SPDX-License-Identifier: Apache-2.0 */
/* Options of discovery.process: Alloy's names, types and defaults (of its code, where its
 * documentation says otherwise). */
#include "process/options.h"

#include "abi/option.h"
#include "abi/value.h"
#include "base/clock.h"

static const struct andiron_option discover_items[] = {
	OPTION(BOOL, "exe", "true", "Adds __meta_process_exe, the path of the program."),
	OPTION(BOOL, "cwd", "true", "Adds __meta_process_cwd, the working directory."),
	OPTION(BOOL, "commandline", "true",
	       "Adds __meta_process_commandline, the arguments and their "
	       "program, separated by blanks."),
	OPTION(BOOL, "uid", "false", "Adds __meta_process_uid, the real user id."),
	OPTION(BOOL, "username", "false",
	       "Adds __meta_process_username, by the host's passwd file."),
	OPTION(BOOL, "cgroup_path", "false",
	       "Adds __meta_process_cgroup_path, the lines of "
	       "/proc/PID/cgroup joined by |."),
	OPTION(BOOL, "container_id", "true", "Adds __container_id__, by which `join` pairs."),
};

static const struct andiron_options discover_block = ANDIRON_OPTIONS(discover_items);

static const struct andiron_option items[] = {
	OPTION(TARGETS, "join", NULL,
	       "Targets of containers; a process gets the labels of its container's."),
	OPTION(DURATION, "refresh_interval", "\"60s\"",
	       "How often /proc is read as a whole. Processes are seen as they begin all the "
	       "same; this finds what makes no event, as a move to another cgroup. Less than 15s "
	       "counts only where the kernel gives no events.",
	       .min = 1, .max = INT64_MAX),
	OPTION(BLOCK, "discover_config", NULL,
	       "Which labels a process gets, besides __process_pid__, __meta_process_comm and "
	       "__meta_process_systemd_unit.",
	       .block = &discover_block),
};

const struct andiron_options process_options = ANDIRON_OPTIONS(items);

struct discovery_config options_config(const struct andiron_value *args)
{
	static const struct andiron_value none = {.kind = ANDIRON_VALUE_MAP};
	const struct andiron_value *block = value_get(args, "discover_config");
	const struct andiron_value *c = block ? block : &none;

	return (struct discovery_config){
		.refresh_ns = value_int(args, "refresh_interval", 60 * NS_PER_SEC),
		.choice = {
			.exe = value_bool(c, "exe", true),
			.cwd = value_bool(c, "cwd", true),
			.commandline = value_bool(c, "commandline", true),
			.container_id = value_bool(c, "container_id", true),
			.uid = value_bool(c, "uid", false),
			.username = value_bool(c, "username", false),
			.cgroup_path = value_bool(c, "cgroup_path", false),
		}};
}
