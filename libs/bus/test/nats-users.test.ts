import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect, PermissionViolationError } from '@nats-io/transport-node';
import { isNatsAvailable, type NatsServer, startNatsServer } from '@writ/testing/nats';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  type BusFailure,
  HOOK_EMITTER_NAMES,
  HOOK_EMITTERS,
  HOOK_STREAMS,
  HOOK_SUBJECTS,
  type HookEmitter,
  hookStream,
  hookSubject,
  natsAuthorization,
  OBSERVED_STREAM,
  OBSERVED_SUBJECTS,
  OBSERVER,
  OBSERVER_USER,
  SERVICE_USERS,
  TIMELINE_CONSUMER,
} from '../src/index.ts';
import { createNatsBus } from '../src/nats/index.ts';
import { keeper } from './handlers.ts';

const POOL = {
  user: 'pool-t1',
  service: 'agent-worker',
  passwordVariable: 'POOL_PASSWORD',
  tenants: ['t1'],
} as const;
const USERS = [...SERVICE_USERS, OBSERVER_USER, POOL];

const failures: ({ readonly error: unknown } & Partial<BusFailure>)[] = [];

const secret = (user: string): string => `p-${user}`;

function busOf(server: NatsServer, user: string, service: HookEmitter) {
  const isSupervisor = service === 'supervisor';
  return createNatsBus({
    servers: [server.address],
    name: user,
    credentials: { user, password: secret(user) },
    streams: isSupervisor ? [...HOOK_STREAMS, OBSERVED_STREAM] : [hookStream(service)],
    createsStreams: isSupervisor,
    requiredConsumers: [TIMELINE_CONSUMER],
    streamBytes: 2 ** 20,
    retryBaseMs: 5,
    onError: (error, failure) => failures.push({ error, ...failure }),
  });
}

function event(tenant: string, name: string) {
  const subject = hookSubject({ tenant, runId: 'r1', agent: 'a1', event: name });
  return { eventId: `${tenant}-${name}`, subject, payload: new Uint8Array([1]), headers: {} };
}

/** Connects to NATS with the credentials of a user, without the checks of the bus. */
async function rawClient(server: NatsServer, user: string) {
  const connection = await connect({
    servers: server.address,
    user,
    pass: secret(user),
    inboxPrefix: `_INBOX.${user}`,
  });
  const isDenied = async (attempt: Promise<unknown>): Promise<boolean> => {
    const error: unknown = await attempt.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    return (
      error instanceof PermissionViolationError ||
      (error instanceof Error && error.cause instanceof PermissionViolationError)
    );
  };
  return { connection, js: jetstream(connection), isDenied };
}

describe.skipIf(!isNatsAvailable())('the users of the NATS server', () => {
  let server: NatsServer;
  const handled = keeper();
  const buses: Awaited<ReturnType<typeof busOf>>[] = [];

  beforeAll(async () => {
    server = await startNatsServer({
      config: natsAuthorization(USERS),
      env: Object.fromEntries(USERS.map((it) => [it.passwordVariable, secret(it.user)])),
    });
    const supervisor = await busOf(server, 'supervisor', 'supervisor');
    buses.push(supervisor);
    await supervisor.subscribe({
      subject: HOOK_SUBJECTS,
      durable: TIMELINE_CONSUMER,
      handler: handled.handler,
    });
  });
  afterAll(async () => {
    await Promise.all(buses.map((bus) => bus.close()));
    await server?.stop();
  });

  it('let every service publish its own events, which reach the timeline (HK-1, HK-2)', async () => {
    const names = HOOK_EMITTER_NAMES.flatMap((emitter) => HOOK_EMITTERS[emitter]);
    for (const service of HOOK_EMITTER_NAMES) {
      const bus = await busOf(server, service, service);
      buses.push(bus);
      for (const name of HOOK_EMITTERS[service]) await bus.publish(event('t1', name));
    }
    await vi.waitFor(() =>
      expect(handled.ids().sort()).toEqual(names.map((name) => `t1-${name}`).sort()),
    );
  });

  it('let each service publish only its own events, and the supervisor also those of tool-gateway (HK-1)', async () => {
    for (const service of HOOK_EMITTER_NAMES) {
      const { connection, js, isDenied } = await rawClient(server, service);
      const permitted = [...HOOK_EMITTERS[service]] as string[];
      if (service === 'supervisor') permitted.push(...HOOK_EMITTERS['tool-gateway']);
      for (const name of HOOK_EMITTER_NAMES.flatMap((emitter) => [...HOOK_EMITTERS[emitter]])) {
        const { subject, payload } = event('t1', name);
        const denied = await isDenied(js.publish(subject, payload, { msgID: `lie-${service}` }));
        expect([service, name, denied]).toEqual([service, name, !permitted.includes(name)]);
      }
      await connection.close();
    }
  });

  it('let no worker suppress an event of another service by reusing its event id (HK-1)', async () => {
    const { connection, js } = await rawClient(server, 'agent-worker');
    const { subject, payload } = event('t1', 'STEP_END');
    await js.publish(subject, payload, { msgID: 'the id of an outcome' });
    await connection.close();
    const gateway = buses[HOOK_EMITTER_NAMES.indexOf('tool-gateway') + 1];
    const outcome = { ...event('t1', 'TOOL_END'), eventId: 'the id of an outcome' };
    await gateway?.publish(outcome);
    const delivered = () => handled.kept.filter(({ eventId }) => eventId === outcome.eventId);
    await vi.waitFor(() => expect(delivered()).toHaveLength(2));
  });

  it('let no user publish an event through a reply subject of the server (HK-1)', async () => {
    const { connection } = await rawClient(server, 'agent-worker');
    const { subject: reply } = event('t1', 'TOOL_END');
    const { name } = hookStream('agent-worker');
    connection.publish(`$JS.API.STREAM.INFO.${name}`, '', { reply });
    connection.publish(event('t1', 'STEP_END').subject, 'x', { reply });
    await connection.flush();
    await connection.close();
    await vi.waitFor(() =>
      expect(failures.filter(({ subject }) => subject === reply).length).toBeGreaterThanOrEqual(2),
    );
    const gateway = buses[HOOK_EMITTER_NAMES.indexOf('tool-gateway') + 1];
    await gateway?.publish({ ...event('t1', 'TOOL_END'), eventId: 'after it' });
    await vi.waitFor(() => expect(handled.ids()).toContain('after it'));
    expect(handled.ids()).not.toContain('');
  });

  it('restrict a worker pool to its tenants (SYS-6)', async () => {
    const bus = await busOf(server, POOL.user, POOL.service);
    buses.push(bus);
    await bus.publish({ ...event('t1', 'STEP_START'), eventId: 'pool' });
    await expect(bus.publish(event('t2', 'STEP_START'))).rejects.toMatchObject({
      kind: 'permission_denied',
      reason: 'BUS_PERMISSION_DENIED',
      metadata: { subject: event('t2', 'STEP_START').subject },
    });
  });

  it('let no worker read the events of other services or change the streams (SYS-6)', async () => {
    const { connection, isDenied } = await rawClient(server, 'agent-worker');
    for (const subject of [
      '>',
      'writ.>',
      'writ.progress.v1.>',
      '_INBOX.>',
      '_INBOX.supervisor.>',
    ]) {
      expect(await connection.subscribe(subject).closed).toBeInstanceOf(PermissionViolationError);
    }
    const manager = await jetstreamManager(connection, { checkAPI: false, timeout: 2_000 });
    const [stream] = [hookStream('agent-worker').name];
    const attempts = [
      () => manager.streams.delete(stream),
      () => manager.streams.purge(stream),
      () => manager.streams.update(stream, { subjects: ['x'] }),
      () => manager.streams.add({ name: 'OWN', subjects: ['own'] }),
      () => manager.streams.info(hookStream('tool-gateway').name),
      () => manager.streams.getMessage(stream, { seq: 1 }),
      () => manager.consumers.add(stream, { durable_name: 'spy', ack_policy: 'explicit' }),
      () => manager.consumers.delete(stream, TIMELINE_CONSUMER),
    ];
    for (const attempt of attempts) expect(await isDenied(attempt())).toBe(true);
    await connection.close();
  });

  const observe = () =>
    createNatsBus({
      servers: [server.address],
      name: OBSERVER,
      credentials: { user: OBSERVER, password: secret(OBSERVER) },
      streams: [OBSERVED_STREAM],
      createsStreams: false,
      retryBaseMs: 5,
      onError: (error, failure) => failures.push({ error, ...failure }),
    });

  it('let an observer read each event once, including events published while it was stopped (HK-3)', async () => {
    const meter = buses[HOOK_EMITTER_NAMES.indexOf('execution-meter') + 1];
    const send = async (eventId: string) =>
      await meter?.publish({ ...event('t1', 'LLM_END'), eventId });
    for (const round of ['first', 'second']) {
      const seen = keeper();
      await send(`${round} before`);
      const observer = await observe();
      const durable = OBSERVER;
      await observer.subscribe({ subject: OBSERVED_SUBJECTS, durable, handler: seen.handler });
      await send(`${round} meanwhile`);
      await vi.waitFor(() => expect(seen.ids()).toContain(`${round} meanwhile`));
      await observer.close();
      expect(seen.ids().filter((id) => id.startsWith('first')).length).toBe(
        round === 'first' ? 2 : 0,
      );
      expect(seen.ids().filter((id) => id === `${round} before`)).toHaveLength(1);
    }
  });

  it('let no observer delay an event, publish, or reach a stream of a service (HK-3, SYS-6)', async () => {
    const { connection, js, isDenied } = await rawClient(server, OBSERVER);
    for (const subject of ['>', 'writ.hooks.v1.>', 'writ.progress.v1.>', '_INBOX.supervisor.>'])
      expect(await connection.subscribe(subject).closed).toBeInstanceOf(PermissionViolationError);
    const manager = await jetstreamManager(connection, { checkAPI: false, timeout: 2_000 });
    const { name } = OBSERVED_STREAM;
    const [timeline] = HOOK_STREAMS;
    const attempts = [
      () => js.publish(event('t1', 'RUN_END').subject, 'x', { msgID: 'forged' }),
      () => js.publish('writ.observed.v1.t1.r1.a1.RUN_END', 'x', { msgID: 'forged' }),
      () => manager.streams.delete(name),
      () => manager.streams.purge(name),
      () => manager.consumers.delete(name, OBSERVER),
      () => manager.consumers.add(name, { durable_name: OBSERVER, ack_policy: 'explicit' }),
      () =>
        manager.consumers.add(name, {
          durable_name: 'redirect',
          deliver_subject: event('t1', 'RUN_END').subject,
        }),
      () => manager.streams.info(timeline?.name ?? ''),
      () => manager.consumers.info(timeline?.name ?? '', TIMELINE_CONSUMER),
    ];
    for (const attempt of attempts) expect(await isDenied(attempt())).toBe(true);
    await connection.close();
    // A stopped observer does not cause the streams of the services to retain events.
    const owner = await rawClient(server, 'supervisor');
    const streams = await jetstreamManager(owner.connection, { checkAPI: false });
    await vi.waitFor(async () => {
      for (const stream of HOOK_STREAMS)
        expect((await streams.streams.info(stream.name)).state.messages).toBe(0);
    });
    await owner.connection.close();
  });

  it('are rejected with a reason code if the password is wrong', async () => {
    const options = { servers: [server.address], name: 'x', onError: () => undefined };
    const credentials = { user: 'supervisor', password: 'guessed' };
    await expect(createNatsBus({ ...options, credentials })).rejects.toMatchObject({
      kind: 'unauthenticated',
      reason: 'BUS_CREDENTIALS_REJECTED',
    });
  });
});
