import { describe, expect, it, onTestFinished } from 'vitest';
import { type Received, serveAnswers } from '../../../test/mcp/answering-server.ts';
import { McpConnection } from './mcp-connection.ts';

const serverAt = (url: string) => ({ transport: 'http', url, headers: {} }) as const;

function connectionTo(url: string): McpConnection {
  const ignore = () => undefined;
  const connection = new McpConnection(serverAt(url), { toolsChanged: ignore, exceeded: ignore });
  onTestFinished(() => connection.close());
  return connection;
}

const CONNECT = 'initialize';

describe('the connection to an MCP server (TG-6)', () => {
  it('is not closed for a call that failed on an earlier connection', async () => {
    const { url, names } = await serveAnswers(() => false);
    const connection = connectionTo(url);
    const first = await connection.client();
    await connection.drop(first);
    const second = await connection.client();
    await connection.drop(first);
    expect(await connection.client()).toBe(second);
    expect(names).toEqual([CONNECT, CONNECT]);
  });

  it('is not lost when an earlier one is closed that was replaced during its connect', async () => {
    const connects: Received[] = [];
    const { url } = await serveAnswers((received) => connects.push(received) > 0);
    const connection = connectionTo(url);
    const first = connection.client();
    await expect.poll(() => connects.length).toBe(1);
    const closed = connection.suspend(0);
    const second = connection.client();
    await expect.poll(() => connects.length).toBe(2);
    connects[0]?.reply();
    await first;
    await closed;
    connects[1]?.reply();
    expect(await connection.client()).toBe(await second);
    expect(connects).toHaveLength(2);
  });
});
