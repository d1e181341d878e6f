/* SPDX-License-Identifier: Apache-2.0 */
/* What async-profiler is told: flags of asprof as words of its library. */
#include "java/agent-options.h"
#include "testing/test.h"

#include <errno.h>

static int put(struct buf *out, const char *const *words, size_t n, struct error *err)
{
	struct str flags[16];

	for (size_t i = 0; i < n; i++)
		flags[i] = str_of(words[i]);
	buf_clear(out);
	return agent_flags(out, flags, n, err);
}

/* As `asprof start` itself turns them. */
TEST(flags_become_words)
{
	const char *const words[] = {
		"-e", "cpu,alloc,lock",  "--alloc",  "2m",  "--lock",      "10ms",   "--all-user",
		"-F", "vtable,comptask", "--filter", "1,2", "--ratelimit", "a=1,b=2"};
	struct error err = ERROR_NULL;
	struct buf out = BUF_NULL;

	expect_eq(put(&out, words, sizeof(words) / sizeof(*words), &err), 0);
	expect_str(buf_str(&out),
		   ",event=cpu,alloc,lock,alloc=2m,lock=10ms,alluser,features=vtable+comptask,"
		   "filter=1;2,ratelimit=a=1;b=2");
	buf_free(&out);
}

/* A PMU's event keeps its commas, which would end the word; a setting is no event. */
TEST(events_stay_events)
{
	struct error err = ERROR_NULL;
	struct buf out = BUF_NULL;

	expect_eq(agent_event(&out, STR("cpu/umask=1,event=2/"), &err), 0);
	expect_str(buf_str(&out), ",event=cpu/umask=1:event=2/");
	buf_clear(&out);
	expect_eq(agent_event(&out, STR("itimer,file=/etc/passwd"), &err), -EINVAL);
	expect_eq(agent_event(&out, STR(""), &err), -EINVAL);
	expect_eq(agent_event(&out, STR("a\nb"), &err), -EINVAL);
	expect_eq(agent_value(&out, "alloc", STR("1,file=/x"), "alloc", &err), -EINVAL);
	expect_eq(out.n, 0);
	buf_free(&out);
}

/* Where and how long is the component's; each refusal names the flag. */
TEST(what_is_not_for_a_recording_is_refused)
{
	static const char *const lists[][2] = {
		{"-f", "/x"},         {"-o", "collapsed"}, {"--loop", "1h"}, {"--timeout", "5"},
		{"--fdtransfer", ""}, {"--libpath", "/x"}, {"-d", "5"},      {"start", ""},
		{"123", ""},          {"--wrong", ""},
	};
	struct error err = ERROR_NULL;
	struct buf out = BUF_NULL;

	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		err = ERROR_NULL;
		expect_eq(put(&out, lists[i], 2, &err), -EINVAL);
		expect(strstr(err.text, lists[i][0]) != NULL);
	}
	expect_eq(put(&out, (const char *const[]){"--alloc"}, 1, &err), -EINVAL);
	expect(strstr(err.text, "needs a value") != NULL);
	buf_free(&out);
}
