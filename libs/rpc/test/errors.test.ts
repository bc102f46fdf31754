import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError, createClient, type Transport } from '@connectrpc/connect';
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from '@connectrpc/connect-node';
import { Client, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from '@writ/contracts/google/rpc/error_details_pb';
import { StatusSchema } from '@writ/contracts/google/rpc/status_pb';
import { RunService, StartRunRequestSchema } from '@writ/contracts/writ/run/v1/run_service_pb';
import {
  AlreadyExistsError,
  BudgetExhaustedError,
  CancellationError,
  ConflictError,
  DataLossError,
  DeadlineError,
  InternalError,
  InvalidRequestError,
  NotFoundError,
  NotImplementedError,
  OverloadedError,
  PermissionDeniedError,
  PreconditionError,
  UnauthenticatedError,
  UnavailableError,
} from '@writ/kernel';
import { describe, expect, it, onTestFinished } from 'vitest';
import { fromConnectError, toConnectError } from '../src/errors/connect-errors.ts';
import { truncate } from '../src/errors/error-details.ts';
import { InvalidFieldsError } from '../src/index.ts';
import { ALLOWED, clientOf, drained, KEY, rejection, START, start, TRANSPORTS } from './fixture.ts';

const EVERY_KIND = [
  new InvalidRequestError('INVALID_ID', 'a: is bad.', { field: 'a' }),
  new UnauthenticatedError('TOKEN_INVALID', 'B.'),
  new PermissionDeniedError('ROLE_REQUIRED', 'C.'),
  new NotFoundError('RUN_NOT_FOUND', 'run_id: no run of that id.', { run_id: 'run-1' }),
  new AlreadyExistsError('POOL_EXISTS', 'E.'),
  new PreconditionError('RUN_ENDED', 'F.'),
  new OverloadedError('RATE_LIMITED', 'G.'),
  new ConflictError('STORE_CONFLICT', 'H.'),
  new UnavailableError('STORE_BUSY', 'I.'),
  new DeadlineError('TOOL_TIMEOUT', 'J.'),
  new CancellationError('by hand', { run_id: 'run-1' }),
  new NotImplementedError('UNKNOWN_METHOD', 'K.'),
  new InternalError('INTERNAL', 'L.'),
  new DataLossError('STORE_CORRUPT', 'Größe ≠ 3.'),
  new BudgetExhaustedError({ dimension: 'tokens', used: 4200, limit: 4000 }),
];

describe.each(TRANSPORTS)('over %s', (transport) => {
  it('reproduces every named error in the client (SYS-3)', async () => {
    let next: Error = new Error('unset');
    const { client } = await start(transport, {
      startRun: async () => {
        throw next;
      },
      watchRun: () => {
        throw next;
      },
    });
    const caller = client();
    for (const error of EVERY_KIND) {
      next = error;
      const { kind, reason, message, metadata, name } = error;
      const expected = { kind, reason, message, metadata, name };
      const fromUnary = await rejection(caller.startRun(START, ALLOWED));
      expect(fromUnary).toBeInstanceOf(error.constructor);
      expect(fromUnary).toMatchObject(expected);
      const fromStream = await drained(caller.watchRun({ runId: 'run-1' }, ALLOWED));
      expect(fromStream.error).toMatchObject(expected);
    }
  });

  it('hides an unexpected error from the caller and logs its stack (SYS-3)', async () => {
    const { client, lines } = await start(transport, {
      startRun: async () => {
        throw new TypeError('password=hunter2');
      },
    });
    const error = await rejection(client().startRun(START, ALLOWED));
    expect(error).toMatchObject({
      kind: 'internal',
      reason: 'INTERNAL',
      message: 'Internal error; see the log of the service.',
    });
    expect(lines()).toMatchObject([
      { level: 'error', err: { type: 'TypeError', stack: expect.stringContaining('errors.test') } },
    ]);
  });

  it('rejects invalid input with a message that names the field (SYS-3)', async () => {
    const { client } = await start(transport, {});
    const { goal: _goal, ...rest } = START;
    const error = await rejection(client().startRun(rest, ALLOWED));
    expect(error).toBeInstanceOf(InvalidFieldsError);
    expect(error).toMatchObject({
      kind: 'invalid_argument',
      reason: 'INVALID_FIELD',
      message: 'goal: must be at least 1 characters',
      metadata: { field: 'goal', rule: 'string.min_len' },
      violations: [{ field: 'goal', description: 'must be at least 1 characters' }],
    });
  });

  it('shortens the path of an invalid field, which contains keys of the caller (BD-1)', async () => {
    const { client } = await start(transport, {});
    const key = 'X'.repeat(3_000_000);
    const error = await rejection(client().startRun({ ...START, labels: { [key]: 'x' } }, ALLOWED));
    const field = `labels["${'X'.repeat(119)}…`;
    expect(error).toMatchObject({
      reason: 'INVALID_FIELD',
      message: expect.stringContaining(`${field}: `),
      metadata: { field },
      violations: [{ field }],
    });
  });

  it('lists all invalid fields, nested ones with their path (SYS-3)', async () => {
    const { client } = await start(transport, {});
    const request = { start: { ...START, agent: 'A!', labels: { 'A B': 'x' } } };
    const { error } = await drained(client().runAgent(request, ALLOWED));
    expect(error).toMatchObject({
      message: 'start.agent: does not match regex pattern `^[a-z0-9_-]{1,64}$` (and 1 more)',
      violations: [{ field: 'start.agent' }, { field: 'start.labels["A B"]' }],
    });
  });

  it('hides the validity of the content from a caller without credentials (SYS-3)', async () => {
    const { address, client } = await start(transport, {});
    const refused = { kind: 'unauthenticated', reason: 'TOKEN_MISSING' };
    expect(await rejection(client().startRun({}))).toMatchObject(refused);
    expect((await drained(client().watchRun({}))).error).toMatchObject(refused);
    const garbage = await raw(address, 'StartRun', Buffer.from([0x0a, 0x50, 1]), new Metadata());
    expect(garbage.code).toBe(status.UNAUTHENTICATED);
  });

  it('rejects malformed bytes, naming the message type (SYS-3)', async () => {
    const { address } = await start(transport, {});
    const metadata = new Metadata();
    metadata.set('authorization', `Bearer ${KEY}`);
    const error = await raw(address, 'StartRun', Buffer.from([0x0a, 0x50, 1]), metadata);
    expect(error.code).toBe(status.INVALID_ARGUMENT);
    expect(error.details).toContain('writ.run.v1.StartRunRequest');
    expect(detailsOf(error)?.info).toMatchObject({ domain: 'writ', reason: 'MALFORMED_MESSAGE' });
  });

  it('sends ErrorInfo and BadRequest in grpc-status-details-bin to a plain grpc-js client (SYS-3)', async () => {
    const { address } = await start(transport, {});
    const metadata = new Metadata();
    metadata.set('authorization', `Bearer ${KEY}`);
    const error = await raw(address, 'StartRun', Buffer.alloc(0), metadata);
    expect(error.code).toBe(status.INVALID_ARGUMENT);
    expect(error.details).toBe(
      'request_id: does not match regex pattern `^[a-z0-9_-]{1,64}$` (and 2 more)',
    );
    const { info, badRequest } = detailsOf(error) ?? {};
    expect(info).toMatchObject({
      domain: 'writ',
      reason: 'INVALID_FIELD',
      metadata: { field: 'request_id' },
    });
    expect(badRequest?.fieldViolations.map(({ field }) => field)).toEqual([
      'request_id',
      'agent',
      'goal',
    ]);
  });

  it('sends the retry delay of a rejected call as RetryInfo (SYS-3, BD-5)', async () => {
    const { address } = await start(transport, {
      startRun: async () => {
        const metadata = { retry_after_ms: '1500' };
        throw new OverloadedError('START_QUEUE_FULL', 'The queue is full.', metadata);
      },
    });
    const metadata = new Metadata();
    metadata.set('authorization', `Bearer ${KEY}`);
    const request = toBinary(StartRunRequestSchema, create(StartRunRequestSchema, START));
    const error = await raw(address, 'StartRun', Buffer.from(request), metadata);
    expect(error.code).toBe(status.RESOURCE_EXHAUSTED);
    expect(detailsOf(error)?.retryInfo?.retryDelay).toMatchObject({
      seconds: 1n,
      nanos: 500_000_000,
    });
  });

  it('reports a declared but unimplemented method, unary or streaming (SYS-3)', async () => {
    const { client } = await start(transport, {});
    const expected = { kind: 'unimplemented', reason: 'METHOD_NOT_IMPLEMENTED' };
    expect(await rejection(client().getRun({ runId: 'a' }, ALLOWED))).toMatchObject(expected);
    expect((await drained(client().watchRun({ runId: 'a' }, ALLOWED))).error).toMatchObject(
      expected,
    );
  });

  it('reports an unknown method as UNIMPLEMENTED (SYS-2)', async () => {
    const { address } = await start(transport, {});
    const error = await raw(address, 'Nonsense', Buffer.alloc(0), new Metadata());
    expect(error.code).toBe(status.UNIMPLEMENTED);
    expect(error.details).toContain('method /writ.run.v1.RunService/Nonsense');
  });

  it('truncates a message that does not fit into headers, and replaces lone surrogates (SYS-3)', async () => {
    const { client } = await start(transport, {
      startRun: async () => {
        throw new PreconditionError('RUN_ENDED', `\ud800${'x'.repeat(100_000)}`);
      },
    });
    const error = await rejection(client().startRun(START, ALLOWED));
    expect(error).toMatchObject({ kind: 'failed_precondition', reason: 'RUN_ENDED' });
    expect((error as Error).message).toMatch(/^\ufffdx{1000,2100}…$/);
  });

  it('truncates a message so that its encoding fits into the headers of every peer (SYS-3)', async () => {
    const { address } = await start(transport, {
      startRun: async () => {
        throw new PreconditionError('HALTED', '停'.repeat(1_365), { halt_id: 'hlt-1' });
      },
    });
    const metadata = new Metadata();
    metadata.set('authorization', `Bearer ${KEY}`);
    const request = toBinary(StartRunRequestSchema, create(StartRunRequestSchema, START));
    const error = await raw(address, 'StartRun', Buffer.from(request), metadata);
    expect(error.details).toMatch(/^停{300,341}…$/);
    const details = error.metadata.get('grpc-status-details-bin')[0] as Buffer;
    // A message that is forwarded is not shortened again, and text before multi-byte characters is kept.
    expect(truncate(error.details)).toBe(error.details);
    expect(truncate(`${'x'.repeat(800)}${'停'.repeat(1_000)}`)).toMatch(/^x{800}停{200,}…$/);
    // Some peers accept at most 8 KiB of headers.
    const size = encodeURI(error.details).length + details.toString('base64').length;
    expect(size).toBeLessThan(7_000);
  });
});

const PROTOCOLS: readonly [string, (baseUrl: string) => Transport][] = [
  ['gRPC', (baseUrl) => createGrpcTransport({ baseUrl })],
  ['gRPC-Web', (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: '1.1' })],
  [
    'Connect with JSON over HTTP/1.1',
    (baseUrl) => createConnectTransport({ baseUrl, httpVersion: '1.1' }),
  ],
  [
    'Connect with protobuf over HTTP/2',
    (baseUrl) => createConnectTransport({ baseUrl, httpVersion: '2', useBinaryFormat: true }),
  ],
];

describe.each(PROTOCOLS)('a Connect client speaking %s', (_name, transportTo) => {
  it('reads the same errors from the edge (SYS-2, SYS-3)', async () => {
    const { address } = await start('edge', {
      startRun: async () => {
        throw new NotFoundError('AGENT_NOT_FOUND', 'agent: no such agent.', {
          agent: 'refund-desk',
        });
      },
      async *watchRun() {
        yield { event: { sequence: 1n } };
        throw new PreconditionError('RUN_ENDED', 'The run has ended.');
      },
    });
    const client = createClient(RunService, transportTo(`http://${address}`));
    const options = { headers: { authorization: `Bearer ${KEY}` } };
    const thrown = await rejection(client.startRun(START, options));
    expect(ConnectError.from(thrown).code).toBe(Code.NotFound);
    expect(fromConnectError(thrown)).toBeInstanceOf(NotFoundError);
    expect(fromConnectError(thrown)).toMatchObject({
      reason: 'AGENT_NOT_FOUND',
      message: 'agent: no such agent.',
      metadata: { agent: 'refund-desk' },
    });
    const invalid = fromConnectError(await rejection(client.startRun({}, options)));
    expect(invalid).toBeInstanceOf(InvalidFieldsError);
    expect(invalid).toMatchObject({ metadata: { field: 'request_id' } });
    const stream = await drained(client.watchRun({ runId: 'run-1' }, options));
    expect(stream.got).toHaveLength(1);
    expect(fromConnectError(stream.error)).toMatchObject({ reason: 'RUN_ENDED' });
  });
});

describe('a status without details of Writ', () => {
  it('becomes an UnavailableError that names an unreachable peer (SYS-3)', async () => {
    const { server, address, telemetry } = await start('grpc-js', {});
    await server.close(0);
    const error = await rejection(clientOf(address, telemetry).startRun(START));
    expect(error).toBeInstanceOf(UnavailableError);
    expect(error).toMatchObject({ reason: 'UNAVAILABLE', metadata: { address } });
    expect((error as Error).message).toContain(`writ.run.v1.RunService/StartRun at ${address}`);
  });

  it('becomes the error of its code (SYS-3)', () => {
    const bare = (code: Code) => fromConnectError(new ConnectError('No luck.', code));
    expect(bare(Code.Canceled)).toMatchObject({ kind: 'cancelled', cancelReason: 'No luck.' });
    expect(bare(Code.DeadlineExceeded)).toMatchObject({ reason: 'DEADLINE_EXCEEDED' });
    expect(bare(Code.OutOfRange)).toMatchObject({ kind: 'invalid_argument' });
    expect(bare(Code.Unknown)).toMatchObject({ kind: 'internal', reason: 'INTERNAL' });
    expect(bare(Code.ResourceExhausted)).toBeInstanceOf(OverloadedError);
  });

  it('becomes an UnavailableError if the connection is lost, even if Connect reports INTERNAL (SYS-3)', () => {
    for (const code of ['EPIPE', 'ECONNRESET', 'ECONNREFUSED']) {
      const cause = Object.assign(new Error(`write ${code}`), { code });
      const lost = new ConnectError(cause.message, Code.Internal, undefined, undefined, cause);
      expect(fromConnectError(lost)).toBeInstanceOf(UnavailableError);
    }
  });

  it('becomes the error of its code if its ErrorInfo has another domain (SYS-3)', () => {
    const value = create(ErrorInfoSchema, { domain: 'other.example', reason: 'TOKEN_INVALID' });
    const details = [{ desc: ErrorInfoSchema, value }];
    const foreign = new ConnectError('No.', Code.NotFound, undefined, details);
    expect(fromConnectError(foreign)).toMatchObject({ kind: 'not_found', reason: 'NOT_FOUND' });
  });

  it('is not produced by converting a named error to Connect and back (SYS-3)', () => {
    for (const error of EVERY_KIND) {
      const { kind, reason, message, metadata } = error;
      const back = fromConnectError(toConnectError(error));
      expect(back).toMatchObject({ kind, reason, message, metadata });
    }
  });
});

/** Makes a call with grpc-js alone; resolves with the error. */
async function raw(
  address: string,
  method: string,
  request: Buffer,
  metadata: Metadata,
): Promise<ServiceError> {
  const client = new Client(address, credentials.createInsecure());
  onTestFinished(() => client.close());
  const bytes = (buffer: Buffer): Buffer => buffer;
  return new Promise((resolve, reject) => {
    const path = `/writ.run.v1.RunService/${method}`;
    client.makeUnaryRequest(path, bytes, bytes, request, metadata, (error) =>
      error === null ? reject(new Error('The call succeeded.')) : resolve(error),
    );
  });
}

function detailsOf({ metadata }: ServiceError) {
  const [bytes] = metadata.get('grpc-status-details-bin');
  if (!(bytes instanceof Buffer)) return undefined;
  const { details } = fromBinary(StatusSchema, bytes);
  return {
    info: details.map((each) => anyUnpack(each, ErrorInfoSchema)).find(Boolean),
    badRequest: details.map((each) => anyUnpack(each, BadRequestSchema)).find(Boolean),
    retryInfo: details.map((each) => anyUnpack(each, RetryInfoSchema)).find(Boolean),
  };
}
