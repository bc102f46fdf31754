/** The embedded platform in a child process that answers messages of its parent. */

import {
  type Example,
  loadExample,
  openModelSource,
  readPlatformConfig,
  startPlatform,
} from '@writ/platform';
import { SpanKind, type SpanProcessor } from '@writ/telemetry';
import { countWork } from './count-work.ts';

const folder = process.env.STEPS_FOLDER ?? '';
const counted = process.env.STEPS_WORK === undefined ? undefined : countWork();
const exampleName = process.env.STEPS_EXAMPLE;
const hops = new Map<string, number>();
/** Commits by the operation that waited for them. */
const commits = new Map<string, number>();
/** The operation that encloses each span, by span id: an RPC, an event handler or `invoke_agent`. */
const operations = new Map<string, string>();

function add(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

const counter: SpanProcessor = {
  onStart: (span) => {
    const { kind, name, parentSpanContext: parent, links } = span;
    const isOperation = kind !== SpanKind.INTERNAL && kind !== SpanKind.CLIENT;
    const enclosing = isOperation ? undefined : operations.get(parent?.spanId ?? '');
    const isAgent = name.startsWith('invoke_agent ');
    operations.set(span.spanContext().spanId, isAgent ? 'invoke_agent' : (enclosing ?? name));
    if (name !== 'commit') return;
    // A group commit has the first of its transactions as parent and links to the others.
    const transactions = [parent?.spanId, ...links.map((link) => link.context.spanId)];
    for (const operation of new Set(transactions.map((id) => operations.get(id ?? '')))) {
      if (operation !== undefined) add(commits, operation);
    }
  },
  onEnd: ({ kind, name }) => {
    if (kind === SpanKind.CLIENT) add(hops, name);
  },
  forceFlush: async () => undefined,
  shutdown: async () => undefined,
};

const example: Example =
  exampleName === undefined
    ? {
        name: 'steps',
        description: '',
        goal: '',
        agent: '',
        script: '',
        before: [],
        signals: [],
        folder,
        scripts: [],
      }
    : loadExample(exampleName);
const dataDir = process.env.STEPS_DATA ?? folder;
const model =
  exampleName === undefined
    ? { description: '', simulated: false, env: {}, close: async () => undefined }
    : await openModelSource({}, example, { script: example.script, dataDir });
const platform = await startPlatform(
  readPlatformConfig(process.env, {
    example,
    model,
    dataDir,
    freePorts: true,
    ...(process.env.STEPS_HOPS !== undefined && { spanProcessors: [counter] }),
  }),
);
process.on('message', (message) => {
  // Requires --expose-gc.
  if (message === 'heap') for (let times = 0; times < 3; times += 1) globalThis.gc?.();
  if (counted !== undefined) counted.isIdle = message === 'idle';
  process.send?.({
    commits: Object.fromEntries(commits),
    hops: Object.fromEntries(hops),
    work: counted?.work,
    rss: process.memoryUsage().rss,
    heap: process.memoryUsage().heapUsed,
    cpuMs: process.cpuUsage().user / 1_000 + process.cpuUsage().system / 1_000,
  });
});
// The parent process has exited.
process.once('disconnect', () => process.exit());
process.once('SIGTERM', () => {
  void platform.stop().then(() => process.exit());
});
const { edgeUrl, apiKey, addresses } = platform;
process.send?.({ edgeUrl, apiKey, addresses });
