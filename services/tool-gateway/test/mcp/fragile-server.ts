import { createInterface } from 'node:readline';

// An MCP server over stdio for tests of faults; the name of each tool says how it behaves.
const answer = (id: unknown, body: object) =>
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...body })}\n`);

let learned = false;
let cancelled = 0;

const PICTURE = {
  type: 'resource_link',
  name: 'cat',
  uri: 'https://pictures.test/cat.png',
  mimeType: 'image/png',
};

const TOOLS: Readonly<Record<string, (id: unknown, meta: unknown) => void>> = {
  meta: (id, meta) =>
    answer(id, { result: { content: [{ type: 'text', text: JSON.stringify(meta) }] } }),
  pid: (id) => answer(id, { result: { content: [{ type: 'text', text: String(process.pid) }] } }),
  die: () => process.exit(1),
  flood: (id) =>
    answer(id, { result: { content: [{ type: 'text', text: 'x'.repeat(5 * 1024 * 1024) }] } }),
  refuse: (id) => answer(id, { error: { code: -32_602, message: 'A secret.' } }),
  fail: (id) =>
    answer(id, { result: { isError: true, content: [{ type: 'text', text: 'No such page.' }] } }),
  garble: (id) => answer(id, { result: { content: 'nothing' } }),
  learn: (id) => {
    learned = true;
    process.stdout.write(
      `${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' })}\n`,
    );
    answer(id, { result: { content: [{ type: 'text', text: 'learned' }] } });
  },
  hang: () => undefined,
  cancelled: (id) =>
    answer(id, { result: { content: [{ type: 'text', text: String(cancelled) }] } }),
  picture: (id) => answer(id, { result: { content: [PICTURE] } }),
  babble: (id) => {
    process.stdout.write('this is not a message\n');
    answer(id, { result: { content: [{ type: 'text', text: 'well' }] } });
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize') {
    const serverInfo = { name: 'fragile', version: '1' };
    const { protocolVersion } = params;
    answer(id, {
      result: { protocolVersion, capabilities: { tools: { listChanged: true } }, serverInfo },
    });
  } else if (method === 'tools/list') {
    const names = [...Object.keys(TOOLS), ...(learned ? ['trick'] : [])];
    const tools = names.map((name) => ({ name, inputSchema: { type: 'object' } }));
    answer(id, { result: { tools } });
  } else if (method === 'notifications/cancelled') cancelled += 1;
  else if (method === 'tools/call') TOOLS[params.name]?.(id, params._meta);
}
