// SPDX-License-Identifier: Apache-2.0
// Program.java URL: profiles itself with Pyroscope's Java client, until it has pushed twice.

import io.pyroscope.http.Format;
import io.pyroscope.javaagent.EventType;
import io.pyroscope.javaagent.PyroscopeAgent;
import io.pyroscope.javaagent.Snapshot;
import io.pyroscope.javaagent.api.Exporter;
import io.pyroscope.javaagent.config.Config;
import io.pyroscope.javaagent.impl.DefaultLogger;
import io.pyroscope.javaagent.impl.PyroscopeExporter;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CountDownLatch;

public class Program {
	static long sum;

	public static void main(String[] arguments) {
		Config config = new Config.Builder()
				.setApplicationName("sdk.java")
				.setServerAddress(arguments[0])
				.setFormat(Format.JFR)
				.setProfilingEvent(EventType.ITIMER)
				.setUploadInterval(Duration.ofSeconds(1))
				.setLabels(Map.of("region", "eu"))
				.build();
		CountDownLatch pushes = new CountDownLatch(2);
		PyroscopeExporter client =
				new PyroscopeExporter(config, DefaultLogger.PRECONFIG_LOGGER);
		Exporter counted = new Exporter() {
			public void export(Snapshot snapshot) {
				client.export(snapshot);
				pushes.countDown();
			}

			public void stop() {
				client.stop();
			}
		};
		PyroscopeAgent.start(
				new PyroscopeAgent.Options.Builder(config).setExporter(counted).build());
		while (pushes.getCount() > 0)
			for (int i = 0; i < 1000; i++)
				sum += (long) i * i;
		System.exit(0);
	}
}
