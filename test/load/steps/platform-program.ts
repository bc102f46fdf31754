/** The embedded platform in a process of its own, which answers messages of the one that started it. */

import { readPlatformConfig, startPlatform } from '@writ/platform';
import { SpanKind, type SpanProcessor } from '@writ/telemetry';

const folder = process.env.STEPS_FOLDER ?? '';
const hops = new Map<string, number>();
const counter: SpanProcessor = {
  onStart: () => undefined,
  onEnd: ({ kind, name }) => {
    if (kind === SpanKind.CLIENT) hops.set(name, (hops.get(name) ?? 0) + 1);
  },
  forceFlush: async () => undefined,
  shutdown: async () => undefined,
};
const platform = await startPlatform(
  readPlatformConfig(process.env, {
    example: {
      name: 'steps',
      description: '',
      goal: '',
      agent: '',
      script: '',
      before: [],
      signals: [],
      folder,
      scripts: [],
    },
    model: { description: '', simulated: false, env: {}, close: async () => undefined },
    dataDir: process.env.STEPS_DATA ?? folder,
    freePorts: true,
    ...(process.env.STEPS_HOPS !== undefined && { spanProcessors: [counter] }),
  }),
);
process.on('message', () => {
  process.send?.({
    commits: platform.commits(),
    hops: Object.fromEntries(hops),
    rss: process.memoryUsage().rss,
    cpuMs: process.cpuUsage().user / 1_000 + process.cpuUsage().system / 1_000,
  });
});
// Whoever started it is gone.
process.once('disconnect', () => process.exit());
process.once('SIGTERM', () => {
  void platform.stop().then(() => process.exit());
});
process.send?.({ edgeUrl: platform.edgeUrl, apiKey: platform.apiKey });
