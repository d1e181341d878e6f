/* SPDX-License-Identifier: Apache-2.0 */
/* Stale return addresses: what calls that are over have left on the stack or in a register. They
 * are the recording's own, each in turn in each word around the innermost frame by which the thread
 * does not return, so each passes any test of the address alone. The walk may give up there, but
 * shows no other frame. Included by replay.c. */
#pragma once

#define STALE_ADDRESSES 12
#define STALE_WORDS     24 /* from the stack pointer on */

static struct stale {
	uint64_t addresses[STALE_ADDRESSES];
	uint32_t n;
	uint64_t slot;       /* has the innermost frame's return address */
	uint64_t limit;      /* here the caller's own words begin */
	uint64_t frame_size; /* of a compiled method */
	unsigned walks, whole, wrong;
} stale;

/* The return addresses of a walk that is right. Not 0: none can be forged. */
static int stale_find(void)
{
	struct andiron_walk *w = &native_walk;
	int step = JVM_STEP_ON;

	stale.n = 0;
	walk_begin();
	native_state.process = process;
	native_state.epoch++;
	native_state.blob = native_state.proved = native_state.site_id = 0;
	native_state.stub_left = native_state.reads = 0;
	if (recording.head.end != 0 || (w->known & 0xffff) != 0xffff ||
	    in_interpreter(&native_state, w->pc))
		return 1;
	stale.frame_size = 0;
	if (jvm_blob_find(0, w->pc) == 0 && native_state.nmethod)
		stale.frame_size = native_state.frame_size;
	for (int i = 0; i < JVM_FRAMES && step == JVM_STEP_ON; i++) {
		step = jvm_frame(0);
		if (i == 0)
			stale.slot = stale.limit = w->regs[JVM_SP] - 8;
		if (i == 1 && !in_interpreter(&native_state, stale.addresses[0]))
			stale.limit = w->regs[JVM_SP] - 16;
		if (step == JVM_STEP_ON && stale.n < STALE_ADDRESSES &&
		    heap_of(&native_state, w->pc) >= 0)
			stale.addresses[stale.n++] = w->pc;
	}
	return stale.n == 0;
}

static void stale_lay(uint64_t at, const void *bytes, uint32_t n)
{
	laid[n_laid].at = at;
	laid[n_laid].n = n;
	memcpy(laid[n_laid++].bytes, bytes, n);
}

/* Walks, and takes away what was laid. */
static unsigned stale_walk(const char *name, const char *how, uint64_t at, uint64_t address)
{
	char *text;
	int whole, right;

	walk(&process);
	n_laid = 0;
	text = found();
	whole = native_walk.end == 0 && strcmp(text, expected) == 0;
	right = whole || (native_walk.end != 0 && strncmp(text, expected, strlen(text)) == 0);
	stale.walks++;
	stale.whole += (unsigned)whole;
	if (!right)
		printf("# %s, %s %#" PRIx64 " is %#" PRIx64 ": end %u\n# found\n%s# not\n%s", name,
		       how, at, address, native_walk.end, text, expected);
	free(text);
	return !right;
}

/* An address of the interpreter is one that Java code returns to by the code that is there. */
static void stale_code(uint64_t address)
{
	if (in_interpreter(&native_state, address))
		stale_lay(address - 8, "\0\0\0\0\0\0\0\0\x48\x8b\x65\xf0\x48\xc7\x45\xf0", 16);
}

/* One address in each word and each register. */
static unsigned stale_one(const char *name, uint64_t address)
{
	static const int registers[] = {JVM_RAX, JVM_RDX, JVM_RCX};
	uint64_t sp = recording.head.regs[JVM_SP];
	unsigned wrong = 0;

	for (uint64_t at = sp; at < sp + 8 * STALE_WORDS && at < stale.limit; at += 8) {
		if (at == stale.slot)
			continue;
		stale_code(address);
		stale_lay(at, &address, 8);
		wrong += stale_walk(name, "the word at", at, address);
	}
	for (size_t i = 0; i < sizeof(registers) / sizeof(registers[0]); i++) {
		uint64_t *r = &recording.head.regs[registers[i]], before = *r;

		stale_code(address);
		*r = address;
		wrong += stale_walk(name, "register", (uint64_t)registers[i], address);
		*r = before;
	}
	return wrong;
}

/* And a word or register that looks as if code had pushed words and kept the stack pointer before:
 * the address is where the frame would then have its own. */
static unsigned stale_pair(const char *name, uint64_t address)
{
	uint64_t sp = recording.head.regs[JVM_SP], *rcx = &recording.head.regs[JVM_RCX];
	uint64_t kept_rcx = *rcx;
	unsigned wrong = 0;

	for (uint64_t before = sp + 8; before <= sp + JVM_PUSHED; before += 8) {
		uint64_t at = before + stale.frame_size - 8;

		if (at == stale.slot || at >= stale.limit)
			continue;
		stale_code(address);
		stale_lay(at, &address, 8);
		stale_lay(sp, &before, 8);
		wrong += stale_walk(name, "by a kept stack pointer, the word at", at, address);
		stale_code(address);
		stale_lay(at, &address, 8);
		*rcx = before;
		wrong += stale_walk(name, "by rcx, the word at", at, address);
		*rcx = kept_rcx;
	}
	return wrong;
}

/* And words that look as what the search of a text pushes, but none is the address of the copies
 * that so many words would have: they are not believed, so the stack is whole. */
static unsigned stale_search(const char *name, uint64_t address)
{
	uint64_t sp = recording.head.regs[JVM_SP], end = sp + stale.frame_size;
	unsigned wrong = 0;

	if (stale.slot != end - 8 || stale.frame_size < 48)
		return 0;
	for (uint64_t n = 48; n <= JVM_PUSHED && end + n - 8 < stale.limit; n += 16) {
		unsigned whole = stale.whole;

		stale_code(address);
		stale_lay(end + n - 8, &address, 8);
		stale_lay(sp, (const uint64_t[]){sp + n, 0x7fc26f1e6510}, 16);
		stale_lay(sp + 16, (const uint64_t[]){0xfff018e0, 1}, 16);
		wrong += stale_walk(name, "by a text's search, the word at", end + n - 8, address);
		if (stale.whole == whole)
			printf("# %s takes stale words for those of a text's search\n", name);
		wrong += stale.whole == whole;
	}
	return wrong;
}

static unsigned stale_wrong(const char *name)
{
	unsigned wrong = 0;

	if (stale_find() != 0)
		return 0;
	for (uint32_t i = 0; i < stale.n; i++) {
		wrong += stale_one(name, stale.addresses[i]);
		if (stale.frame_size != 0) {
			wrong += stale_pair(name, stale.addresses[i]);
			wrong += stale_search(name, stale.addresses[i]);
		}
	}
	return wrong;
}
