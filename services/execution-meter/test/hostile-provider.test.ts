import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { BudgetLevel } from '@writ/contracts/writ/meter/v1/tab_pb';
import { Dialect, EndReason } from '@writ/contracts/writ/model/v1/model_pb';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { MAX_RESPONSE_BYTES } from '../src/providers/model-call/bounded-fetch.ts';
import { MAX_EVENT_CHARS } from '../src/providers/model-call/event-stream.ts';
import { MeterWorld } from './meter-fixture.ts';
import { textOf } from './model-calls.ts';
import { PRICES } from './models-yaml.ts';

type Respond = (response: ServerResponse, request: IncomingMessage) => void;

const MAX_OUTPUT = 100;
const SSE = { 'content-type': 'text/event-stream' };
const event = (chunk: object) => `data: ${JSON.stringify(chunk)}\n\n`;
const delta = (content: string) => event({ choices: [{ index: 0, delta: { content } }] });
const finish = (usage: object) =>
  [
    event({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
    event({ choices: [], usage }),
    'data: [DONE]\n\n',
  ].join('');

let world: MeterWorld;
afterEach(() => world[Symbol.asyncDispose]());

/** A meter whose only model is served by `respond`. */
async function serve(respond: Respond, settings = ''): Promise<{ readonly asked: string[] }> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? '');
    request.resume().on('end', () => respond(response, request));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const models = [
    'models:',
    '  hello:',
    `    base_url: http://127.0.0.1:${port}/v1`,
    '    model: hostile',
    `    max_output_tokens: ${MAX_OUTPUT}`,
    '    max_retries: 0',
    '    timeout: 10s',
    `    ${PRICES}`,
    settings,
  ].join('\n');
  world = await MeterWorld.start({ models });
  await world.openTab({ budget: { maxCostNanoUsd: 1_000_000n } });
  return { asked };
}

/** Writes `chunk` until the client closes the connection; resolves to the number of bytes. */
async function flood(response: ServerResponse, chunk: string): Promise<number> {
  let sent = 0;
  const closed = once(response, 'close');
  while (!response.destroyed) {
    sent += chunk.length;
    if (!response.write(chunk))
      await Promise.race([new Promise((drained) => response.once('drain', drained)), closed]);
  }
  return sent;
}

describe('a hostile provider', () => {
  it('cannot exceed the output limit: an endless answer is cut and its connection closed (BD-1, EM-8)', async () => {
    const { promise: sent, resolve } = Promise.withResolvers<number>();
    await serve((response) => {
      response.writeHead(200, SSE);
      void flood(response, delta('word '.repeat(20))).then(resolve);
    });
    const generated = await world.generate();
    expect(generated.error).toBeUndefined();
    expect(generated.finished).toMatchObject({
      endReason: EndReason.MAX_TOKENS,
      estimated: true,
      usage: { outputTokens: BigInt(MAX_OUTPUT) },
      warnings: expect.arrayContaining([
        'The provider sent more than the requested output; the answer was cut.',
      ]),
    });
    expect(textOf(generated).length).toBeLessThan(10_000);
    // The count includes bytes that the sockets buffered and the meter never read.
    expect(await sent).toBeLessThan(32 * 1024 * 1024);
    const { usedCostNanoUsd = 0n } = await world.level(BudgetLevel.AGENT);
    expect(usedCostNanoUsd).toBeLessThan(1_000_000n);
  });

  it('cannot keep a stream open with events without content (BD-1)', async () => {
    await serve((response) => {
      response.writeHead(200, SSE);
      void flood(response, delta('').repeat(50));
    });
    const { finished } = await world.generate();
    expect(finished).toMatchObject({
      endReason: EndReason.MAX_TOKENS,
      usage: { outputTokens: 0n },
    });
  });

  it.each([
    ['one line', { ...SSE }, 'x'.repeat(4 * MAX_EVENT_CHARS)],
    [
      'a compressed body',
      { 'content-type': 'application/json', 'content-encoding': 'gzip' },
      undefined,
    ],
  ])('cannot send %s above the size limit (BD-1)', async (_, headers, line) => {
    const bomb = gzipSync(Buffer.alloc(4 * MAX_RESPONSE_BYTES, ' '));
    await serve(
      (response) => void response.writeHead(200, headers).end(line ?? bomb),
      line === undefined ? '    streaming: false' : '',
    );
    const { finished } = await world.generate();
    expect(finished?.failure?.stopReason).toBe('provider_error:bad_response');
  });

  it('cannot redirect the request to another address (BD-1)', async () => {
    const { asked } = await serve((response, { url }) => {
      if (url === '/other') response.writeHead(200, SSE).end(delta('Stolen.') + finish({}));
      else response.writeHead(307, { location: '/other' }).end();
    });
    const { finished } = await world.generate();
    expect(finished?.failure?.stopReason).toBe('provider_error:307');
    expect(asked).toEqual(['/v1/chat/completions']);
  });

  it.each([
    [
      'more output than was requested',
      { prompt_tokens: 10, completion_tokens: 101 },
      /101 output tokens, but 100 were requested/,
    ],
    [
      'more input than the prompt can have',
      { prompt_tokens: 100_000, completion_tokens: 1 },
      /100000 input tokens for a prompt of at most/,
    ],
    [
      'no output for an answer',
      { prompt_tokens: 10, completion_tokens: 0 },
      /no output tokens for an answer with content/,
    ],
    ['negative usage', { prompt_tokens: 10, completion_tokens: -1 }, /invalid or incomplete usage/],
  ])(
    'cannot falsify usage: a report of %s is replaced by an estimate (EM-8)',
    async (_, usage, warning) => {
      await serve(
        (response) => void response.writeHead(200, SSE).end(delta('Hello there.') + finish(usage)),
      );
      const { finished } = await world.generate();
      expect(finished).toMatchObject({
        estimated: true,
        usage: { outputTokens: 3n },
        warnings: [expect.stringMatching(warning)],
      });
      expect(finished?.usage?.inputTokens).toBeLessThan(100n);
    },
  );

  it.each([
    ['an image', { type: 'image_url', image_url: { url: 'https://x.example/i.png' } }, 48_169],
    [
      'a document',
      { type: 'file', file: { file_data: 'data:application/pdf;base64,AA' } },
      160_000,
    ],
  ])(
    'has its reported usage for %s booked in full, even above the reservation (EM-3, EM-8)',
    async (_, part, tokens) => {
      const usage = { prompt_tokens: tokens, completion_tokens: 1 };
      await serve(
        (response) => void response.writeHead(200, SSE).end(delta('A cat.') + finish(usage)),
      );
      await world.openTab({ agent: { name: 'support', instance: 'viewer' } });
      const options = await world.credentials('viewer');
      const body = { messages: [{ role: 'user', content: [part] }], stream: true };
      const native = { dialect: Dialect.OPENAI_CHAT, bodyJson: Buffer.from(JSON.stringify(body)) };
      const { finished } = await world.generate({ messages: [], native }, options);
      expect(finished).toMatchObject({
        estimated: false,
        usage: { inputTokens: BigInt(tokens) },
        costNanoUsd: BigInt(tokens + 1) * 1_000n,
      });
    },
  );
});
