/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of everything that crosses a plugin's border, pinned. A line here may be added; one
 * that has to be changed is a broken promise to every plugin that is already built. */
#include <andiron/dropped-targets.h>
#include <andiron/embed.h>
#include <andiron/target-processes.h>
#include <andiron/values.h>
#include <andiron/object.h>
#include <andiron/plugin.h>
#include <andiron/process-events.h>
#include <andiron/runtime.h>
#include <andiron/status.h>
#include <andiron/subprocess.h>

#include <assert.h>
#include <stddef.h>

#define SIZE(type, bytes)                                                                          \
	static_assert(sizeof(struct type) == (bytes), #type " has changed its size")
#define AT(type, member, offset)                                                                   \
	static_assert(offsetof(struct type, member) == (offset), #type "." #member " has moved")

SIZE(andiron_str, 16);
SIZE(andiron_kv, 32);
SIZE(andiron_value, 80);
AT(andiron_value, items, 48);
SIZE(andiron_options, 16);
AT(andiron_option, block, 80);
SIZE(andiron_label, 8);
SIZE(andiron_target, 32);
AT(andiron_targets, release, 112);
SIZE(andiron_string, 16);
SIZE(andiron_function, 16);
SIZE(andiron_line, 16);
SIZE(andiron_location, 32);
SIZE(andiron_mapping, 48);
SIZE(andiron_stack, 8);
SIZE(andiron_attribute, 24);
SIZE(andiron_link, 24);
SIZE(andiron_profile_type, 32);
SIZE(andiron_group, 16);
SIZE(andiron_row, 48);
SIZE(andiron_loss, 16);
SIZE(andiron_encoded, 64);
AT(andiron_encoded, raw_bytes, 32);
SIZE(andiron_column, 32);
SIZE(andiron_segment, 24);
AT(andiron_batch, columns, 16);
AT(andiron_batch, samples, 48);
AT(andiron_batch, release, 96);
SIZE(andiron_extension, 16);
SIZE(andiron_export, 24);
SIZE(andiron_metric, 40);
AT(andiron_metric_sink, add, 16);
AT(andiron_spawn, max_output, 48);
AT(andiron_host, error_add, 8);
AT(andiron_host, send_batch, 104);
AT(andiron_host, extension, 152);
AT(andiron_host, request_targets, 160);
AT(andiron_host, each_extension, 168);
AT(andiron_host, offer_batch, 176);
AT(andiron_host, full, 184);
AT(andiron_component, validate, 72);
AT(andiron_component, batch, 136);
AT(andiron_component, extension, 152);
AT(andiron_component, subprocess, 160);
AT(andiron_component, wants, 168);
AT(andiron_component, resend, 176);
AT(andiron_component, sender, 184);
AT(andiron_subprocess, start, 8);
AT(andiron_subprocess, start_sender, 16);
SIZE(andiron_component_state, 48);
AT(andiron_status, upstream, 24);
AT(andiron_status, reload, 32);
AT(andiron_status, component, 40);
AT(andiron_embed, log, 48);
AT(andiron_embed, answers, 56);
AT(andiron_profile, release, 80);
AT(andiron_plugin, components, 40);
AT(andiron_plugin, n_components, 48);
SIZE(andiron_object_key, 32);
AT(andiron_objects, release, 56);
AT(andiron_objects, open_named, 64);
SIZE(andiron_process_event, 48);
AT(andiron_process_events, unsubscribe, 16);
SIZE(andiron_runtime_process, 24);
SIZE(andiron_runtime_mapping, 32);
SIZE(andiron_runtime_claim, 24);
SIZE(andiron_runtime_map, 16);
SIZE(andiron_runtime_frame, 48);
AT(andiron_runtime_frame, function, 16);
AT(andiron_runtime, object, 8);
AT(andiron_runtime, frame_type, 32);
AT(andiron_runtime, recognizes, 40);
AT(andiron_runtime, claim, 64);
AT(andiron_runtime, resolve, 80);
AT(andiron_runtime, describe, 88);
SIZE(andiron_dropped_target, 48);
AT(andiron_dropped_target, file, 32);
AT(andiron_dropped_targets_sink, add, 16);
AT(andiron_dropped_targets, each, 8);
SIZE(andiron_target_process, 40);
SIZE(andiron_target_processes_row, 48);
AT(andiron_target_processes_row, why, 32);
AT(andiron_target_processes_sink, add, 16);
AT(andiron_target_processes, each, 8);
AT(andiron_values, send, 8);

int main(void)
{
	return 0;
}
