/* SPDX-License-Identifier: Apache-2.0 */
/* Requests as pyroscope.receive_http and otlp.receive get them: the first line says which, as
 * fields that a tab separates (api, name, format, content type, encoding, from, until, rate), and
 * the rest is the body. What is refused is refused in words; what is taken is a sound batch that is
 * not larger than what came. */
#include "fuzz.h"

#include "abi/batch-build.h"
#include "base/check.h"
#include "receive-http/intake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct str body = {(const char *)data, n};
	struct str line = str_cut(&body, '\n'), api;
	struct otlp_rejected rejected;
	struct intake_request request = {.body = body};
	const struct intake_head head = {1, 1, 1};
	const struct andiron_batch *batch;
	struct batch_view view;
	unsigned int status = 0;
	struct error err = ERROR_NULL;

	api = str_cut(&line, '\t');
	request.api = str_is(api, "push")   ? INTAKE_PUSH
		      : str_is(api, "otlp") ? INTAKE_OTLP
					    : INTAKE_INGEST;
	request.rejected = &rejected;
	request.name = str_cut(&line, '\t');
	request.format = str_cut(&line, '\t');
	request.content_type = str_cut(&line, '\t');
	request.content_encoding = str_cut(&line, '\t');
	request.from = str_cut(&line, '\t');
	request.until = str_cut(&line, '\t');
	request.sample_rate = line;
	if (intake_read(&request, &head, &batch, &status, &err) < 0) {
		check(status >= 400 && status < 600 && (err.text[0] || status == 503));
		return 0;
	}
	if (!batch) { /* OTLP without samples */
		check(request.api == INTAKE_OTLP);
		return 0;
	}
	check(batch_view_init(&view, batch) == 0);
	check(batch->samples > 0 && batch->samples <= ANDIRON_BATCH_MAX_SAMPLES);
	check(batch->start_ns >= 0 && batch->end_ns >= batch->start_ns);
	batch_release(batch);
	return 0;
}
