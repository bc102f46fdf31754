import {
  Client,
  type ClientOptions,
  SdkHttpError,
  type Transport,
} from '@modelcontextprotocol/client';
import {
  compileSchema,
  isWritError,
  type JsonObject,
  type JsonValue,
  withTimeout,
} from '@writ/kernel';
import { MCP_LIMITS, type McpLimitError, MessageRate, tooMany } from './mcp-limits.ts';
import { createTransport, type McpServer } from './mcp-transport.ts';

/** Thrown when there is no connection to the server, so that nothing was sent. */
export class McpUnreachableError extends Error {
  override readonly name = 'McpUnreachableError';
}

const CONNECT_MS = 10_000;
const MIN_BACKOFF_MS = 250;
const MAX_BACKOFF_MS = 30_000;
/** Change notifications within this time cause one listing. */
const CHANGE_DEBOUNCE_MS = 250;

/** A client, and the promise of its connection attempt, which resolves to the client. */
interface Connect {
  readonly client: Client;
  readonly connected: Promise<Client>;
}

/**
 * The connection to an MCP server: opened on demand, and reopened with exponential back-off after it breaks (TG-6).
 */
export class McpConnection {
  readonly #server: McpServer;
  readonly #onToolsChanged: () => void;
  readonly #onExceeded: (error: McpLimitError) => void;
  #current: Connect | undefined;
  /** Number of calls in flight of each client, including clients that were replaced. */
  readonly #calls = new Map<Client, number>();
  #connectedAt = 0;
  #failures = 0;
  #notBefore = 0;
  #suspendedUntil = 0;
  #isKept = false;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(
    server: McpServer,
    on: {
      /** Called each time a connection is established, and after each notification that the tools changed. */
      readonly toolsChanged: () => void;
      /** Called when the server sends more than {@link MCP_LIMITS} allow. */
      readonly exceeded: (error: McpLimitError) => void;
    },
  ) {
    this.#server = server;
    this.#onToolsChanged = on.toolsChanged;
    this.#onExceeded = on.exceeded;
  }

  /**
   * A connected client.
   * @throws McpUnreachableError when the server is unreachable, the back-off has not ended, or the connection was
   *   closed; all callers that wait for the same connection attempt receive this error
   */
  async client(): Promise<Client> {
    if (this.#current !== undefined) return await reachable(this.#current.connected);
    if (this.#closed || performance.now() < this.#notBefore) throw new McpUnreachableError();
    const client = this.#createClient();
    const connected = this.#connect(client);
    this.#current = { client, connected };
    try {
      await reachable(connected);
      this.#connectedAt = performance.now();
      this.#onToolsChanged();
      return client;
    } catch (error) {
      this.#lost(client);
      throw error;
    }
  }

  /** Connects now, and reconnects whenever the connection breaks, until `close`. */
  keep(): void {
    this.#isKept = true;
    this.#connectIn(0);
  }

  /**
   * Makes a call with `client` and returns its result. If the client is replaced during the call, it is closed after its
   * last call.
   */
  async call<T>(client: Client, send: (client: Client) => Promise<T>): Promise<T> {
    this.#calls.set(client, this.#callsOf(client) + 1);
    try {
      return await send(client);
    } finally {
      const left = this.#callsOf(client) - 1;
      if (left > 0) this.#calls.set(client, left);
      else this.#calls.delete(client);
      if (left === 0 && client !== this.#current?.client) void closeClient(client);
    }
  }

  /** Resets the back-off after a response. */
  answered(): void {
    this.#failures = 0;
  }

  get isSuspended(): boolean {
    return performance.now() < this.#suspendedUntil;
  }

  /** Closes the connection, and opens no new connection for `ms`. */
  async suspend(ms: number): Promise<void> {
    this.#suspendedUntil = performance.now() + ms;
    this.#notBefore = this.#suspendedUntil;
    await this.#closeAll();
  }

  /**
   * Ends the use of `client` for new calls, and closes it after its calls in flight: they may still return a result.
   * Does nothing for the client of an earlier connection. After {@link McpConnection.keep}, a new connection is opened
   * automatically, which lists the tools again; otherwise the next call opens it.
   */
  replace(client: Client): void {
    if (client !== this.#current?.client) return;
    this.#current = undefined;
    this.#connectIn(MIN_BACKOFF_MS);
    // A caller that received the client in this turn of the event loop may still begin a call with it.
    setImmediate(() => {
      if (this.#callsOf(client) === 0) void closeClient(client);
    });
  }

  /** Closes the connection without reconnecting, and ends a server that is a child process. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#closeAll();
  }

  /** Closes the current client, and the replaced clients that have calls in flight. */
  async #closeAll(): Promise<void> {
    const current = this.#current;
    const replaced = [...this.#calls.keys()].filter((client) => client !== current?.client);
    await Promise.all([this.#drop(current), ...replaced.map(closeClient)]);
  }

  async #drop(current: Connect | undefined): Promise<void> {
    if (current === undefined) return;
    this.#current = undefined;
    this.#connectIn(MIN_BACKOFF_MS);
    await current.connected.then(closeClient).catch(() => undefined);
  }

  #callsOf(client: Client): number {
    return this.#calls.get(client) ?? 0;
  }

  #createClient(): Client {
    const tools = {
      autoRefresh: false,
      debounceMs: CHANGE_DEBOUNCE_MS,
      onChanged: () => this.#onToolsChanged(),
    };
    // No capabilities: a server may not send requests to the gateway, such as sampling.
    const about = { name: 'writ-tool-gateway', version: '0.1.0' };
    return new Client(about, {
      listChanged: { tools },
      listMaxPages: MCP_LIMITS.pages,
      jsonSchemaValidator,
    });
  }

  async #connect(client: Client): Promise<Client> {
    const transport = createTransport(this.#server, this.#onExceeded);
    try {
      // The timeout of the SDK does not limit the notification that ends the handshake.
      const connected = client.connect(transport, { timeout: CONNECT_MS });
      await withTimeout(connected, CONNECT_MS, () => {
        throw new Error('The handshake of the server took too long.');
      });
    } catch (error) {
      await transport.close();
      throw error;
    }
    this.#limitMessages(transport);
    client.onclose = () => this.#lost(client);
    client.onerror = (error) => {
      // After a restart of an HTTP server, the notification stream fails first, with status 404.
      const isUnknownSession = error instanceof SdkHttpError && error.status === 404;
      if (isUnknownSession || isStreamGivenUp(error)) this.replace(client);
    };
    return client;
  }

  /** Limits the unsolicited messages of the server; each call limits its own response. */
  #limitMessages(transport: Transport): void {
    const rate = new MessageRate();
    const deliver = transport.onmessage;
    transport.onmessage = (message, extra) => {
      if (!('method' in message) || rate.admits()) return deliver?.(message, extra);
      this.#onExceeded(tooMany('notifications'));
    };
  }

  #lost(client: Client): void {
    if (client !== this.#current?.client) return;
    this.#current = undefined;
    const now = performance.now();
    if (this.#connectedAt > 0 && now - this.#connectedAt > MAX_BACKOFF_MS) this.#failures = 0;
    this.#connectedAt = 0;
    const pause = Math.min(MAX_BACKOFF_MS, MIN_BACKOFF_MS * 2 ** this.#failures);
    this.#failures += 1;
    this.#notBefore = Math.max(now + pause, this.#suspendedUntil);
    this.#connectIn(pause);
  }

  #connectIn(ms: number): void {
    if (!this.#isKept || this.#closed) return;
    clearTimeout(this.#timer);
    const due = Math.max(ms, this.#notBefore - performance.now());
    this.#timer = setTimeout(() => {
      // The timer may fire slightly early, and `suspend` extends the back-off without setting the timer again if there
      // is no connection.
      if (performance.now() < this.#notBefore) this.#connectIn(0);
      else this.client().catch(() => undefined);
    }, due).unref();
  }
}

/** Closes a client, which may be closed already. */
async function closeClient(client: Client): Promise<void> {
  await client.close().catch(() => undefined);
}

/**
 * Returns whether the MCP client no longer tries to reopen a stream of an HTTP server. It reports this only by the
 * message of an error, and it does not close the connection.
 */
function isStreamGivenUp(error: Error): boolean {
  return error.message.startsWith('Maximum reconnection attempts');
}

/**
 * Returns the client of a connection attempt. Converts a failure of the attempt to McpUnreachableError, because nothing
 * was sent.
 */
async function reachable(connected: Promise<Client>): Promise<Client> {
  try {
    return await connected;
  } catch (error) {
    throw new McpUnreachableError('The server is unreachable.', { cause: error });
  }
}

/**
 * Validates structured results against the output schema of their tool; compiles the schema, within the limits for
 * schemas, for the first result, also if the schema is unusable.
 */
const jsonSchemaValidator: NonNullable<ClientOptions['jsonSchemaValidator']> = {
  getValidator: <T>(schema: unknown) => {
    let accepts: ((value: JsonValue) => boolean) | undefined;
    return (input: unknown) => {
      try {
        accepts ??= compileOnce(schema as JsonObject);
        if (accepts(input as JsonValue)) {
          return { valid: true, data: input as T, errorMessage: undefined };
        }
      } catch (error) {
        if (!isWritError(error)) throw error;
        return { valid: false, data: undefined, errorMessage: error.message };
      }
      const errorMessage = 'The result does not match the schema of the tool.';
      return { valid: false, data: undefined, errorMessage };
    };
  },
};

/** Compiles a schema. If it is unusable, returns a function that throws the error. */
function compileOnce(schema: JsonObject): (value: JsonValue) => boolean {
  try {
    return compileSchema(schema);
  } catch (error) {
    return () => {
      throw error;
    };
  }
}
