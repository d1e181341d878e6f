/* SPDX-License-Identifier: Apache-2.0 */
/* The page for people, page.html: one document that draws the graph from what the agent answers to
 * programs. It fetches nothing from anywhere else, by its own policy (lib/export/embed.py). */
#pragma once

extern const char agent_page[];
