import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { EVERYTHING } from '../../services/tool-gateway/test/mcp/everything.ts';
import { connect, refundPlatform, startMcpRun } from '../agent-proxy/mcp-run.ts';

const MEDIA = fileURLToPath(new URL('../agent-proxy/media-server.ts', import.meta.url));
const TOOLS = [
  'everything__get-tiny-image',
  'everything__get-resource-reference',
  'everything__get-resource-links',
  'everything__trigger-long-running-operation',
  'media__sing',
  'media__compose',
  'media__record',
];
const FILES = {
  WRIT_TOOLS_FILE: JSON.stringify({
    tools: TOOLS.map((name) => ({ name, source: name.split('__')[0] })),
    sources: {
      everything: { kind: 'mcp', command: process.execPath, args: [EVERYTHING] },
      media: { kind: 'mcp', command: process.execPath, args: [MEDIA] },
    },
  }),
  WRIT_POLICY_FILE: `
policy: content
rules:
  - { id: all, match: { tool: "*" }, decide: approve, reason: harmless, risk: 10 }
`,
  WRIT_AGENTS_FILE: `
agents:
  - name: refund-bot
    kind: external
    model: { model: refund-desk }
    tools: [${TOOLS.join()}]
`,
};

it('returns images, audio and resources of real MCP servers as the servers sent them (AP-3, TG-6)', async () => {
  const test = await refundPlatform({ files: FILES });
  const run = await startMcpRun(test);
  const client = await connect(run);
  const call = async (name: string, args: Readonly<Record<string, unknown>> = {}) => {
    const result = await client.callTool({ name, arguments: args });
    expect(result.isError ?? false, name).toBe(false);
    expect(result._meta).toHaveProperty(['io.writ/receipt']);
    return result;
  };
  const image = await call('everything__get-tiny-image');
  expect(image.content).toContainEqual({
    type: 'image',
    mimeType: 'image/png',
    data: expect.stringMatching(/^iVBORw0KGgo/),
  });
  expect(image.content.filter(({ type }) => type === 'text')).toHaveLength(2);
  const resource = { resourceType: 'Blob', resourceId: 1 };
  const { content: embedded } = await call('everything__get-resource-reference', resource);
  expect(embedded).toContainEqual(
    expect.objectContaining({
      type: 'resource',
      resource: expect.objectContaining({ blob: expect.stringMatching(/./) }),
    }),
  );
  const { content: links } = await call('everything__get-resource-links', { count: 2 });
  expect(links.filter(({ type }) => type === 'resource_link')).toHaveLength(2);
  const audio = { type: 'audio', data: 'UklGRiQAAABXQVZF', mimeType: 'audio/wav' };
  expect((await call('media__sing')).content).toEqual([audio]);
  // `structuredContent` contains only what the server marks as structured; all other content stays in `content`.
  const composed = await call('media__compose');
  expect(composed.structuredContent).toEqual({ bars: 4 });
  expect(composed.content).toEqual([{ type: 'text', text: '{"bars":4}' }, audio]);
  // A truncated audio recording is omitted, and the result reports the omission.
  const recorded = await call('media__record');
  expect(recorded._meta).toMatchObject({ 'io.writ/truncated': true });
  expect(recorded.content).toEqual([
    {
      type: 'text',
      text: expect.stringMatching(
        /^The result of media__record has \d{6} bytes, more than max_output_bytes of the tool: its content is omitted\.$/,
      ),
    },
  ]);
  const operation = { duration: 0.1, steps: 2 };
  const { content: done } = await call('everything__trigger-long-running-operation', operation);
  expect(JSON.stringify(done)).toMatch(/completed/i);
});
