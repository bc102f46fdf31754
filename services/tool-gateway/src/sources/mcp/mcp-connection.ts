import { Client, SdkHttpError } from '@modelcontextprotocol/client';
import { createTransport, type McpServer } from './mcp-transport.ts';

/** There is no connection, and nothing was sent. */
export class McpUnreachableError extends Error {
  override readonly name = 'McpUnreachableError';
}

const CONNECT_MS = 10_000;
const MIN_BACKOFF_MS = 250;
const MAX_BACKOFF_MS = 30_000;
/** Smallest interval between two listings after change notifications. */
const CHANGE_DEBOUNCE_MS = 250;

/**
 * The connection to an MCP server: opened on demand, and reopened with exponential back-off after it breaks (TG-6).
 */
export class McpConnection {
  readonly #server: McpServer;
  readonly #onToolsChanged: () => void;
  #client: Promise<Client> | undefined;
  #connectedAt = 0;
  #failures = 0;
  #notBefore = 0;
  #isKept = false;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  /** @param onToolsChanged called after each connect and each notification that the tools changed */
  constructor(server: McpServer, onToolsChanged: () => void) {
    this.#server = server;
    this.#onToolsChanged = onToolsChanged;
  }

  /**
   * A connected client.
   * @throws McpUnreachableError when the server is unreachable or the back-off has not ended
   */
  async client(): Promise<Client> {
    if (this.#client !== undefined) return await this.#client;
    if (this.#closed || performance.now() < this.#notBefore) throw new McpUnreachableError();
    const connecting = this.#connect();
    this.#client = connecting;
    try {
      const client = await connecting;
      this.#connectedAt = performance.now();
      this.#onToolsChanged();
      return client;
    } catch (error) {
      this.#lost(connecting);
      throw new McpUnreachableError('The server is unreachable.', { cause: error });
    }
  }

  /** Connects now, and reconnects whenever the connection breaks, until `close`. */
  keep(): void {
    this.#isKept = true;
    this.#connectIn(0);
  }

  /** Resets the back-off after a response. */
  answered(): void {
    this.#failures = 0;
  }

  /** Closes a connection that the server no longer knows. */
  async drop(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    if (client !== undefined) this.#connectIn(MIN_BACKOFF_MS);
    // The connection may be closed already.
    await client?.then((open) => open.close()).catch(() => undefined);
  }

  /** Closes the connection for good, and ends a server that is a child process. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.drop();
  }

  async #connect(): Promise<Client> {
    const tools = {
      autoRefresh: false,
      debounceMs: CHANGE_DEBOUNCE_MS,
      onChanged: () => this.#onToolsChanged(),
    };
    // No capabilities: a server may not send requests to the gateway, such as sampling.
    const about = { name: 'writ-tool-gateway', version: '0.1.0' };
    const client = new Client(about, { listChanged: { tools } });
    const transport = createTransport(this.#server);
    try {
      await client.connect(transport, { timeout: CONNECT_MS });
    } catch (error) {
      await transport.close();
      throw error;
    }
    const connection = this.#client;
    client.onclose = () => this.#lost(connection);
    client.onerror = (error) => {
      // After a restart of an HTTP server, the notification stream fails first, with status 404.
      const isUnknownSession = error instanceof SdkHttpError && error.status === 404;
      if (isUnknownSession && connection === this.#client) void this.drop();
    };
    return client;
  }

  #lost(connection: Promise<Client> | undefined): void {
    if (connection === undefined || connection !== this.#client) return;
    this.#client = undefined;
    const now = performance.now();
    if (this.#connectedAt > 0 && now - this.#connectedAt > MAX_BACKOFF_MS) this.#failures = 0;
    this.#connectedAt = 0;
    const pause = Math.min(MAX_BACKOFF_MS, MIN_BACKOFF_MS * 2 ** this.#failures);
    this.#failures += 1;
    this.#notBefore = now + pause;
    this.#connectIn(pause);
  }

  #connectIn(ms: number): void {
    if (!this.#isKept || this.#closed) return;
    clearTimeout(this.#timer);
    const due = Math.max(ms, this.#notBefore - performance.now());
    this.#timer = setTimeout(() => {
      // A failure meanwhile has extended the back-off.
      if (performance.now() < this.#notBefore) this.#connectIn(0);
      else this.client().catch(() => undefined);
    }, due).unref();
  }
}
