import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { ConfigError } from '@writ/config';
import { type Clock, systemClock } from '@writ/kernel';
import { answerChat } from './answer-chat.ts';
import { BadChatRequestError, type ChatRequest, readChatRequest } from './chat-request.ts';
import { checkScripts, loadScripts } from './load-scripts.ts';
import { type LoggedRequest, RequestLog } from './request-log.ts';
import type { Script } from './script.ts';
import { writeError } from './write-reply.ts';

/** Options of {@link createModelSimulator}. */
export interface ModelSimulatorOptions {
  /** Scripts, or a folder with scripts in YAML. */
  readonly scripts: readonly Script[] | string;
  /** Script for models whose name does not begin with `sim:`; default: the only script, if there is exactly one. */
  readonly defaultScript?: string;
  /** Default 0: a free port. */
  readonly port?: number;
  /** Default 127.0.0.1. */
  readonly host?: string;
  /**
   * File to which each chat request for a script is appended as a JSON line before it is answered. A simulator that is
   * restarted with the same file continues the call numbers and the usage counts of the script entries from this file.
   */
  readonly requestLog?: string;
  readonly clock?: Clock;
  /** Called before each answer; the answer is sent after the returned promise resolves. */
  readonly beforeAnswer?: (chat: ChatRequest) => Promise<void>;
}

/** A running simulator. */
export interface ModelSimulator {
  /** Base URL for OpenAI clients, ending in `/v1`. */
  readonly url: string;
  readonly port: number;
  readonly scripts: readonly Script[];
  /** Chat requests for a script since the start, in order. */
  requests(): readonly LoggedRequest[];
  /** Resolves with the first request that matches, past or future; rejects when the simulator closes first. */
  until(matches: (request: LoggedRequest) => boolean): Promise<LoggedRequest>;
  /** Drops every connection and stops listening. */
  close(): Promise<void>;
}

const MODEL_PREFIX = 'sim:';
const MAX_BODY_BYTES = 16 * 1024 * 1024;

/**
 * Starts a local server for OpenAI chat completions that answers from scripts (SYS-5). The model
 * `sim:<script>` selects the script, any other model the default one. Requests require a bearer key,
 * of any value.
 * @throws ConfigError naming every problem in the scripts; the socket's error when the server cannot listen
 * @example
 * ```ts
 * import { createModelSimulator } from '@writ/simulator';
 *
 * const simulator = await createModelSimulator({
 *   scripts: [{ name: 'greeting', description: 'Greets.', entries: [{ reply: { text: 'Hello.' } }] }],
 * });
 * const response = await fetch(`${simulator.url}/chat/completions`, {
 *   method: 'POST',
 *   headers: { authorization: 'Bearer any', 'content-type': 'application/json' },
 *   body: JSON.stringify({ model: 'sim:greeting', messages: [{ role: 'user', content: 'Hi.' }] }),
 * });
 * console.log(await response.json(), simulator.requests().length);
 * await simulator.close();
 * ```
 */
export async function createModelSimulator(
  options: ModelSimulatorOptions,
): Promise<ModelSimulator> {
  const { scripts: given, host = '127.0.0.1', clock = systemClock } = options;
  const scripts = typeof given === 'string' ? loadScripts(given) : given;
  checkScripts(scripts);
  const names = scripts.map(({ name }) => name);
  if (options.defaultScript !== undefined && !names.includes(options.defaultScript)) {
    const problem = `Default script "${options.defaultScript}" does not exist. Available scripts: ${names.join(', ')}.`;
    throw new ConfigError('The scripts', [problem]);
  }
  const fallback = options.defaultScript ?? (scripts.length === 1 ? scripts[0]?.name : undefined);
  const pick = (model: string): Script | undefined => {
    const name = model.startsWith(MODEL_PREFIX) ? model.slice(MODEL_PREFIX.length) : fallback;
    return scripts.find((script) => script.name === name);
  };
  const log = new RequestLog(options.requestLog);

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = new URL(request.url ?? '/', 'http://simulator').pathname;
    if (!/^Bearer \S/.test(request.headers.authorization ?? '')) {
      const message = 'You did not provide an API key in an Authorization header (Bearer).';
      return writeError(response, { status: 401, message, code: 'invalid_api_key' });
    }
    if (request.method === 'GET' && path === '/v1/models') return listModels(response, scripts);
    if (request.method !== 'POST' || path !== '/v1/chat/completions') {
      const message = `Unknown request URL: ${request.method} ${path}.`;
      return writeError(response, { status: 404, message, code: 'unknown_url' });
    }
    const chat = readChatRequest(await readBody(request));
    const script = pick(chat.model);
    if (script === undefined) {
      const known = scripts.map(({ name }) => MODEL_PREFIX + name).join(', ');
      const message = `The model '${chat.model}' does not exist. Available models: ${known}.`;
      return writeError(response, {
        status: 404,
        message,
        code: 'model_not_found',
        param: 'model',
      });
    }
    await options.beforeAnswer?.(chat);
    const { 'x-request-id': requestId, 'idempotency-key': key, traceparent } = request.headers;
    const id = String(requestId ?? key ?? '');
    await answerChat({
      response,
      chat,
      script,
      log,
      now: clock.now(),
      requestId: id,
      traceparent: String(traceparent ?? ''),
    });
  };

  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => {
      if (response.headersSent || response.destroyed) response.destroy();
      else if (error instanceof BadChatRequestError) {
        writeError(response, { status: 400, message: error.message, param: error.param });
      } else {
        writeError(response, { status: 500, message: `The simulator failed: ${String(error)}` });
      }
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, host, resolve);
  });
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const shownHost = host.includes(':') ? `[${host}]` : host;
  return {
    url: `http://${shownHost}:${port}/v1`,
    port,
    scripts,
    requests: () => log.requests(),
    until: (matches) => log.until(matches),
    close: () =>
      new Promise((resolve) => {
        log.close();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function listModels(response: ServerResponse, scripts: readonly Script[]): void {
  const data = scripts.map(({ name }) => ({
    id: MODEL_PREFIX + name,
    object: 'model',
    created: 0,
    owned_by: 'simulator',
  }));
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ object: 'list', data }));
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) {
      throw new BadChatRequestError('body', `The body is larger than ${MAX_BODY_BYTES} bytes.`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
