import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { requireMcpConformance } from '../../scripts/mcp-conformance.ts';
import { type McpRun, refundPlatform, startMcpRun } from '../agent-proxy/mcp-run.ts';

const program = requireMcpConformance();
const NAMES = ['test_simple_text', 'test_error_handling', 'json_schema_2020_12_tool'];
const TOOLS = `
tools:
${NAMES.map(
  (name) => `
  - name: ${name}
    description: A fixture of the suite.
    input_schema: { type: object, properties: {} }
    side_effect: read_only
    risk: 0.1
    source: fixtures`,
).join('')}
sources:
  fixtures: { kind: local, module: "${import.meta.dirname}/mcp-fixture-tools.ts" }
`;
const POLICY = `
policy: fixtures
rules: [{ id: all, match: { tool: "*" }, decide: approve, reason: fixture, risk: 1 }]
`;
const AGENTS = `
agents:
  - { name: refund-bot, kind: external, model: { model: refund-desk }, tools: [${NAMES.join(', ')}] }
`;

describe.skipIf(program === undefined)('the MCP conformance suite', () => {
  it.each(['2026-07-28', '2025-11-25'])(
    'passes for a server that offers only tools, except for the expected failures: %s (AP-3)',
    async (revision) => {
      const test = await refundPlatform({
        files: { WRIT_AGENTS_FILE: AGENTS, WRIT_TOOLS_FILE: TOOLS, WRIT_POLICY_FILE: POLICY },
      });
      const url = await authorized(await startMcpRun(test));
      const baseline = join(import.meta.dirname, `mcp-baseline-${revision}.yaml`);
      const args = ['--url', url, '--requirements', revision, '--expected-failures', baseline];
      const child = spawn(process.execPath, [program ?? '', 'server', ...args]);
      let output = '';
      child.stdout.on('data', (part) => {
        output += part;
      });
      child.stderr.on('data', (part) => {
        output += part;
      });
      const [code] = (await once(child, 'exit')) as [number | null];
      expect(code, output).toBe(0);
    },
  );
});

/**
 * Starts a proxy that adds the token to every request, because the suite has no option for a token, and forwards
 * everything else unchanged; returns its URL.
 */
async function authorized({ url, token }: McpRun): Promise<string> {
  const server = createServer((incoming, outgoing) => {
    const headers = { ...incoming.headers, authorization: `Bearer ${token}` };
    const { method, url: path } = incoming;
    const sent = request({ host: url.hostname, port: url.port, method, path, headers });
    sent.once('response', (answer) => {
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(outgoing);
    });
    sent.once('error', () => outgoing.destroy());
    outgoing.once('close', () => sent.destroy());
    incoming.pipe(sent);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}${url.pathname}`;
}
