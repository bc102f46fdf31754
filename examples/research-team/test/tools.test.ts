import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock, type ToolCall, ToolFailure } from '@writ/kernel';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readShelf } from '../src/shelf.ts';
import { createTools } from '../src/tools.ts';

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'writ-shelf-'));
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

async function call(tool: string, args: Record<string, string>) {
  const tools = await createTools({ dataDir, variables: {}, clock: systemClock });
  const context: ToolCall = {
    idempotencyKey: 'idem_1',
    tenant: 'acme',
    runId: 'run_1',
    agentName: 'writer',
    callId: 'op-1',
    signal: new AbortController().signal,
  };
  return await tools[tool]?.(args, context);
}

describe('the library', () => {
  it('finds documents by words, best match first, and reads them (TG-6)', async () => {
    expect(await call('search_library', { words: 'tidal mill flour' })).toEqual({
      documents: ['yield-of-a-tidal-mill', 'mills-of-the-estuary', 'windmills-inland'],
    });
    expect(await call('read_document', { document: 'windmills-inland' })).toMatchObject({
      text: expect.stringContaining('wind'),
    });
    await expect(call('read_document', { document: 'toString' })).rejects.toThrow(ToolFailure);
  });

  it('numbers the briefs of a run, so that a second brief is visible (TG-5)', async () => {
    const brief = { title: 'Mills', text: 'They turned.' };
    expect(await call('publish_brief', brief)).toMatchObject({ status: 'ok', number: 1 });
    expect(await call('publish_brief', brief)).toMatchObject({ number: 2 });
    expect(readShelf(dataDir)).toHaveLength(2);
  });
});
