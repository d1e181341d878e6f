/* SPDX-License-Identifier: Apache-2.0 */
/* The entry: the one symbol that a plugin exports.
 *
 *     ANDIRON_PLUGIN("example", "1.0", "Apache-2.0", &first_component, &second_component);
 *
 * The ABI's major version is in the symbol's name. A plugin works with every host of this major
 * version; abi_minor says which headers it was built with. It is constant data: loading a plugin
 * runs none of its code. */
#ifndef ANDIRON_PLUGIN_H
#define ANDIRON_PLUGIN_H

#include <andiron/component.h>

#ifdef __cplusplus
extern "C" {
#endif

struct andiron_plugin {
	uint32_t size;
	uint32_t abi_minor;
	const char *name;    /* as in its file name: andiron-NAME.so */
	const char *version; /* the plugin's own */
	const char *license; /* SPDX */
	/* Ids of extensions without which no component of it works; a host that lacks one refuses
	 * the plugin and names it. Ends with NULL, may be NULL. */
	const char *const *needs;
	const struct andiron_component *const *components;
	uint64_t n_components;
};

#define ANDIRON_PLUGIN_SYMBOL "andiron_plugin_v1"

#if defined(__GNUC__)
#define ANDIRON_EXPORT __attribute__((visibility("default")))
#else
#define ANDIRON_EXPORT
#endif

extern ANDIRON_EXPORT const struct andiron_plugin andiron_plugin_v1;

/* Defines it: the plugin's name, its version and license, and pointers to its components. A plugin
 * that has `needs` writes the struct out. */
#define ANDIRON_PLUGIN(name_, version_, license_, ...)                                             \
	static const struct andiron_component *const andiron_plugin_components[] = {__VA_ARGS__};  \
	const struct andiron_plugin andiron_plugin_v1 = {                                          \
		(uint32_t)sizeof(struct andiron_plugin),                                           \
		ANDIRON_ABI_MINOR,                                                                 \
		name_,                                                                             \
		version_,                                                                          \
		license_,                                                                          \
		0,                                                                                 \
		andiron_plugin_components,                                                         \
		sizeof(andiron_plugin_components) / sizeof(andiron_plugin_components[0]),          \
	}

#ifdef __cplusplus
}
#endif

#endif
