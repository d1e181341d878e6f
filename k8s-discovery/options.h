/* SPDX-License-Identifier: Apache-2.0 */
/* The options of this plugin's components, which are Alloy's and a few of ours. */
#pragma once

#include <andiron/component.h>

extern const struct andiron_options kubernetes_options, kubelet_options, remote_options;
