import { Client, SdkHttpError } from '@modelcontextprotocol/client';
import { createTransport, type McpServer } from './mcp-transport.ts';

/** Thrown where there is no connection, and nothing was sent. */
export class McpAwayError extends Error {
  override readonly name = 'McpAwayError';
}

const CONNECT_MS = 10_000;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;
/** However often a server says that its tools changed, it is asked no more often than this. */
const CHANGES_MS = 250;

/**
 * The one connection to an MCP server: made when it is first needed, and made again after it broke,
 * with longer pauses the more often that goes wrong (TG-6).
 */
export class McpConnection {
  readonly #server: McpServer;
  readonly #listenToTools: () => void;
  #client: Promise<Client> | undefined;
  #connectedAt = 0;
  #failures = 0;
  #notBefore = 0;
  #isKept = false;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  /** @param listenToTools told whenever the server's tools may be others: connected anew, or it says so */
  constructor(server: McpServer, listenToTools: () => void) {
    this.#server = server;
    this.#listenToTools = listenToTools;
  }

  /**
   * A client that is connected.
   * @throws McpAwayError when the server cannot be reached, or it is too soon to try again
   */
  async client(): Promise<Client> {
    if (this.#client !== undefined) return await this.#client;
    if (this.#closed || performance.now() < this.#notBefore) throw new McpAwayError();
    const connecting = this.#connect();
    this.#client = connecting;
    try {
      const client = await connecting;
      this.#connectedAt = performance.now();
      this.#listenToTools();
      return client;
    } catch (error) {
      this.#lost(connecting);
      throw new McpAwayError('The server cannot be reached.', { cause: error });
    }
  }

  /** Connects now, and by itself whenever the connection breaks, until it is closed. */
  keep(): void {
    this.#isKept = true;
    this.#connectIn(0);
  }

  /** Says that the server answered, so that the next break is a first one again. */
  answered(): void {
    this.#failures = 0;
  }

  /** Gives up a connection that the server knows no more. */
  async drop(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    if (client !== undefined) this.#connectIn(FIRST_PAUSE_MS);
    // What is given up may be gone already.
    await client?.then((open) => open.close()).catch(() => undefined);
  }

  /** Ends the connection, and the server where it is a process, for good. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.drop();
  }

  async #connect(): Promise<Client> {
    const tools = {
      autoRefresh: false,
      debounceMs: CHANGES_MS,
      onChanged: () => this.#listenToTools(),
    };
    // No capabilities: a server may not ask this one for anything, such as a model's answer.
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
      // Of a server over HTTP that was started anew, the stream of notifications is the first to know.
      const isForgotten = error instanceof SdkHttpError && error.status === 404;
      if (isForgotten && connection === this.#client) void this.drop();
    };
    return client;
  }

  #lost(connection: Promise<Client> | undefined): void {
    if (connection === undefined || connection !== this.#client) return;
    this.#client = undefined;
    const now = performance.now();
    if (this.#connectedAt > 0 && now - this.#connectedAt > LONGEST_PAUSE_MS) this.#failures = 0;
    this.#connectedAt = 0;
    const pause = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** this.#failures);
    this.#failures += 1;
    this.#notBefore = now + pause;
    this.#connectIn(pause);
  }

  #connectIn(ms: number): void {
    if (!this.#isKept || this.#closed) return;
    clearTimeout(this.#timer);
    const due = Math.max(ms, this.#notBefore - performance.now());
    this.#timer = setTimeout(() => {
      // A failure has made the next attempt due by itself.
      if (performance.now() < this.#notBefore) this.#connectIn(0);
      else this.client().catch(() => undefined);
    }, due).unref();
  }
}
