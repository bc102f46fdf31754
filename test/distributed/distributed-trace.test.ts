import { RunStatus } from '@writ/contracts/writ/run/v1/run_pb';
import { newId } from '@writ/kernel';
import { context, createTelemetry, ROOT_CONTEXT, withSpan } from '@writ/telemetry';
import {
  type DistributedPlatform,
  isDistributedPlatformAvailable,
  type Replica,
  startDistributedPlatform,
} from '@writ/testing/distributed';
import {
  type JaegerTrace,
  type OtlpReceiver,
  startOtlpReceiver,
  toJaeger,
} from '@writ/testing/otlp';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { approveEdited } from '../approve-edited.ts';

const PATIENT = { timeout: 60_000, interval: 100 };

describe.skipIf(!isDistributedPlatformAvailable())('a run on several replicas', () => {
  let receiver: OtlpReceiver;
  let platform: DistributedPlatform;

  beforeAll(async () => {
    receiver = await startOtlpReceiver();
    platform = await startDistributedPlatform({
      replicas: { supervisor: 1, 'spawn-budget': 1, 'execution-meter': 1, 'tool-gateway': 1 },
      env: {
        OTEL_EXPORTER_OTLP_ENDPOINT: receiver.grpcUrl,
        OTEL_METRIC_EXPORT_INTERVAL: '1000',
        WRIT_WORKER_LEASE_TTL: '2s',
      },
      envOf: ({ name }) => ({ OTEL_RESOURCE_ATTRIBUTES: `service.instance.id=${name}` }),
    });
  }, 120_000);
  afterAll(async () => {
    await platform?.close();
    await receiver?.close();
  });

  /** Returns the workers that ran the agent, according to the exported spans. */
  function workersOf(traceId: string): Replica[] {
    return receiver
      .spans()
      .filter((span) => span.traceId === traceId && span.name === 'invoke_agent refund-worker')
      .map(({ resource }) => platform.replica(resource['service.instance.id'] as Replica['name']));
  }

  const gauges = () =>
    receiver
      .points()
      .map(
        ({ metric, attributes, value }) => `${metric} ${attributes['writ.state'] ?? ''} ${value}`,
      );

  it('produces one Jaeger trace without orphans when one worker suspends it and another resumes it (SYS-1, SV-5, RT-1)', async () => {
    const own = createTelemetry({
      service: 'writ-client',
      logLevel: 'silent',
      otlp: { traces: { endpoint: receiver.grpcUrl, protocol: 'grpc' } },
    });
    const { runs, approvals } = platform.client;
    /** Polls outside the trace of the test. */
    const poll = <T>(at: () => Promise<T>): Promise<T> =>
      vi.waitFor(() => context.with(ROOT_CONTEXT, at), PATIENT);

    const traceId = await withSpan(own.tracer, 'client', {}, async (span) => {
      const started = await runs.startRun({
        requestId: newId('req'),
        agent: 'refund-worker',
        goal: 'Refund it.',
        model: 'sim-escalate-1200',
      });
      const runId = started.run?.runId ?? '';
      const approvalId = await poll(async () => {
        const { approvals: open } = await approvals.listApprovals({ runId });
        expect(open).toHaveLength(1);
        return open[0]?.approvalId ?? '';
      });
      const { traceId } = span.spanContext();
      const [first] = await poll(async () => {
        const workers = workersOf(traceId);
        expect(workers).toHaveLength(1);
        return workers;
      });
      await poll(async () =>
        expect(gauges()).toEqual(expect.arrayContaining(GAUGES_WHILE_WAITING)),
      );
      await first?.stop();
      await approveEdited({ client: { approvals } }, approvalId, { amount_usd: 800 });
      await poll(async () => {
        const { run } = await runs.getRun({ runId });
        expect(run?.result?.status, run?.result?.stopReason).toBe(RunStatus.OK);
      });
      return traceId;
    });
    await own.shutdown();
    // A clean shutdown exports every span.
    for (const replica of platform.replicas) await replica.stop();

    const jaeger = toJaeger(traceId, receiver.spans());
    expect(unresolved(jaeger)).toEqual([]);
    expect(roots(jaeger)).toEqual(['client']);
    expect(new Set(workersOf(traceId)).size).toBe(2);
    const resumed = jaeger.spans.filter(
      ({ operationName, references }) =>
        operationName === 'invoke_agent refund-worker' &&
        references.some(({ refType }) => refType === 'FOLLOWS_FROM'),
    );
    expect(resumed).not.toEqual([]);
    for (const path of CALL_PATHS) expect(pathsOf(jaeger)).toContain(path);
    const requests = platform.modelRequests().map(({ traceparent }) => traceparent?.slice(0, 52));
    const chats = jaeger.spans.filter(({ operationName }) => operationName.startsWith('chat '));
    expect(requests.sort()).toEqual(chats.map(({ spanID }) => `00-${traceId}-${spanID}`).sort());
  }, 180_000);
});

/** The gauges while a run waits for a human. */
const GAUGES_WHILE_WAITING = [
  'writ.agents suspended 1',
  'writ.approvals.open  1',
  'writ.slots holder 1',
  'writ.outbox.backlog  0',
];

/** The call paths between services, to the model and the tool. */
const CALL_PATHS = [
  'writ-client > supervisor',
  'supervisor > agent-worker',
  'agent-worker > execution-meter > chat',
  'agent-worker > supervisor > review',
  'agent-worker > tool-gateway > execute_tool',
  'supervisor > execution-meter',
  'supervisor > spawn-budget',
];

function unresolved({ spans }: JaegerTrace): string[] {
  const known = new Set(spans.map(({ traceID, spanID }) => `${traceID}/${spanID}`));
  return spans.flatMap(({ operationName, references }) =>
    references
      .filter(({ traceID, spanID }) => !known.has(`${traceID}/${spanID}`))
      .map(({ refType }) => `${operationName} ${refType}`),
  );
}

function roots({ spans }: JaegerTrace): string[] {
  return spans
    .filter(({ references }) => !references.some(({ refType }) => refType === 'CHILD_OF'))
    .map(({ operationName }) => operationName);
}

type Reference = JaegerTrace['spans'][number]['references'][number];

/** Returns every chain of services in the trace, with the operation at the end of the chain. */
function pathsOf({ spans, processes }: JaegerTrace): Set<string> {
  const byId = new Map(spans.map((span) => [span.spanID, span]));
  const paths = new Set<string>();
  for (const span of spans) {
    const services: string[] = [];
    for (let at: typeof span | undefined = span; at !== undefined; ) {
      const service = processes[at.processID]?.serviceName ?? '';
      if (services[0] !== service) services.unshift(service);
      const parent: Reference | undefined = at.references.find(
        ({ refType }) => refType === 'CHILD_OF',
      );
      at = parent === undefined ? undefined : byId.get(parent.spanID);
    }
    const [kind = ''] = span.operationName.split(' ');
    for (let from = 0; from < services.length; from += 1) {
      const tail = services.slice(from).join(' > ');
      paths.add(tail).add(`${tail} > ${kind}`);
    }
  }
  return paths;
}
