import { Client } from '@modelcontextprotocol/client';
import { createTransport, type McpServer } from './mcp-transport.ts';

/** Thrown where there is no connection, and nothing was sent. */
export class McpAwayError extends Error {
  override readonly name = 'McpAwayError';
}

const CONNECT_MS = 10_000;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;

/**
 * The one connection to an MCP server: made when it is first needed, and made again when it is
 * needed after it broke, with longer pauses the more often that goes wrong (TG-6).
 */
export class McpConnection {
  readonly #server: McpServer;
  #client: Promise<Client> | undefined;
  #failures = 0;
  #notBefore = 0;
  #closed = false;

  constructor(server: McpServer) {
    this.#server = server;
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
      return await connecting;
    } catch (error) {
      this.#lost(connecting);
      throw new McpAwayError('The server cannot be reached.', { cause: error });
    }
  }

  /** Says that the server answered, so that the next break is a first one again. */
  answered(): void {
    this.#failures = 0;
  }

  /** Gives up a connection that the server knows no more. */
  async drop(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    await client?.then(
      (open) => open.close(),
      () => undefined,
    );
  }

  /** Ends the connection, and the server where it is a process, for good. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.drop();
  }

  async #connect(): Promise<Client> {
    // No capabilities: a server may not ask this one for anything, such as a model's answer.
    const client = new Client({ name: 'writ-tool-gateway', version: '0.1.0' }, {});
    const transport = createTransport(this.#server);
    try {
      await client.connect(transport, { timeout: CONNECT_MS });
    } catch (error) {
      await transport.close();
      throw error;
    }
    const connection = this.#client;
    client.onclose = () => this.#lost(connection);
    return client;
  }

  #lost(connection: Promise<Client> | undefined): void {
    if (connection === undefined || connection !== this.#client) return;
    this.#client = undefined;
    const pause = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** this.#failures);
    this.#failures += 1;
    this.#notBefore = performance.now() + pause;
  }
}
