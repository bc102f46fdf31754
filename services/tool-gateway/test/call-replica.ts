import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createFreezeHandlers, watchFreezes } from '@writ/freeze';
import { openSigner, type Signer } from '@writ/identity';
import { type RunKey, sha256Hex, systemClock } from '@writ/kernel';
import { Sweeper } from '@writ/service';
import type { StoreLocation } from '@writ/store';
import { createTelemetry } from '@writ/telemetry';
import { testStore } from '@writ/testing/postgres';
import { onTestFinished } from 'vitest';
import { InFlightCalls } from '../src/app/calls/in-flight-calls.ts';
import type { PresentedCall } from '../src/app/calls/presented-call.ts';
import { recoverCalls } from '../src/app/calls/recover-calls.ts';
import { freezeParts } from '../src/app/freezes/freeze-parts.ts';
import type { GatewayContext } from '../src/context.ts';
import { parseArguments } from '../src/domain/call-arguments.ts';
import { createRegistry } from '../src/domain/registry.ts';
import { compileTool, type SideEffect } from '../src/domain/tool.ts';
import { createGatewayEvents } from '../src/events.ts';
import type { OpenSource } from '../src/sources/open-source.ts';
import type { ToolAnswer, ToolInvocation } from '../src/sources/source.ts';
import { type GatewayStore, openGatewayStore } from '../src/store/gateway-store.ts';

const telemetry = createTelemetry({ service: 'test', logLevel: 'silent' });
/** Interval at which calls of dead replicas are recovered, as in the service. */
const RECOVERY_MS = 1_000;

const REGISTRY = createRegistry([tool('pay', 'destructive'), tool('charge', 'idempotent')]);

/** A gateway without its listener; tests make calls with writs that are neither signed nor verified. */
export interface CallReplica {
  readonly store: GatewayStore;
  readonly context: GatewayContext;
  readonly freezes: ReturnType<typeof createFreezeHandlers>;
  stop(): Promise<void>;
}

/** The behavior of the tools of a replica. */
export interface Tools {
  /** Called at the start of each execution of a tool. */
  run(invocation: ToolInvocation): void;
  /** Whether the replica was killed; a killed replica neither executes a tool nor returns a result. */
  isKilled(): boolean;
}

/** Opens a replica and recovers the in-flight calls of its predecessor; the caller must close the store. */
export async function openCallReplica(
  location: StoreLocation,
  signer: Signer,
  tools: Tools,
): Promise<CallReplica> {
  const store = await openGatewayStore(location);
  const inFlightCalls = new InFlightCalls();
  const source = sourceOf(tools);
  const context = {
    store,
    clock: systemClock,
    telemetry,
    signer,
    tools: { now: { registry: REGISTRY, find: () => source } },
    inFlightCalls,
    events: createGatewayEvents(telemetry),
    wakeRelay: () => undefined,
    flushSoon: () => undefined,
  } as unknown as GatewayContext;
  await recoverCalls(context);
  const { log } = telemetry;
  const watch = watchFreezes({ store, calls: inFlightCalls, log });
  const sweeper = new Sweeper({ calls: () => recoverCalls(context) }, RECOVERY_MS, log);
  if (store.replicas.shared) sweeper.start();
  return {
    store,
    context,
    freezes: createFreezeHandlers(freezeParts(context)),
    stop: async () => {
      await Promise.all([watch.stop(), sweeper.stop()]);
    },
  };
}

/** Opens a replica with a new store and new keys, which are deleted after the test. */
export async function openLoneReplica(run: Tools['run'] = () => undefined): Promise<CallReplica> {
  const keyDir = await mkdtemp(join(tmpdir(), 'writ-keys-'));
  const signer = await openSigner({ service: 'tool-gateway', keyDir, clock: systemClock });
  const location = testStore({ dialect: 'sqlite', file: ':memory:' });
  const replica = await openCallReplica(location, signer, { run, isKilled: () => false });
  onTestFinished(async () => {
    await replica.stop();
    await replica.store.close();
    await rm(keyDir, { recursive: true, force: true });
  });
  return replica;
}

/** A call with a writ that matches it. */
export function presentedCall(
  run: RunKey,
  callId: string,
  {
    tool: name,
    maxToolCalls,
    to = callId,
  }: { readonly tool: string; readonly maxToolCalls: number; readonly to?: string },
): PresentedCall {
  const argumentsJson = JSON.stringify({ to });
  return {
    writ: {
      ...run,
      instance: 'payer-1',
      callId,
      id: `writ-${callId}`,
      agentName: 'payer',
      sessionId: 'session-1',
      tool: name,
      definitionDigest: REGISTRY.tools.get(name)?.digest ?? '',
      argsSha256: sha256Hex(argumentsJson),
      maxToolCalls,
      allowedTools: [name],
      resultFields: [],
      noDefaultLimits: true,
    },
    validUntil: new Date(systemClock.now().getTime() + 600_000),
    argumentsJson,
    arguments: parseArguments(argumentsJson),
    step: 1,
    epoch: 1n,
    traceparent: '',
  };
}

function tool(name: string, sideEffect: SideEffect) {
  const inputSchema = { type: 'object', properties: { to: { type: 'string' } }, required: ['to'] };
  const limits = { maxCallsPerAgent: 1_000, maxRepeats: 1_000 };
  const rest = { timeoutMs: 10_000, maxOutputBytes: 1_000, risk: 0, source: 'world' };
  return compileTool({ name, description: name, inputSchema, sideEffect, ...limits, ...rest });
}

function sourceOf({ run, isKilled }: Tools): OpenSource {
  const never = new Promise<ToolAnswer>(() => undefined);
  return {
    slots: { acquire: async () => () => undefined },
    invoke: async (invocation: ToolInvocation): Promise<ToolAnswer> => {
      if (isKilled()) return await never;
      run(invocation);
      await sleep(1);
      if (isKilled()) return await never;
      const content = '{"status":"ok"}';
      return { kind: 'output', output: { kind: 'json', content, value: { status: 'ok' } } };
    },
    close: async () => undefined,
  } as unknown as OpenSource;
}
