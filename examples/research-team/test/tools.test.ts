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

/** Calls a tool of a new instance of the tools. */
async function call(tool: string, args: Record<string, string>, runId = 'run_1') {
  const tools = await createTools({ dataDir, variables: {}, clock: systemClock });
  const context: ToolCall = {
    idempotencyKey: 'idem_1',
    tenant: 'acme',
    runId,
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

describe('calculator', () => {
  it('evaluates an expression or reports its error', async () => {
    expect(await call('calculator', { expression: '(2 + 3) * 4' })).toEqual({ result: 20 });
    const failure = call('calculator', { expression: '1 / 0' });
    await expect(failure).rejects.toThrow(ToolFailure);
    await expect(failure).rejects.toThrow('divides by zero');
  });
});

describe('now', () => {
  it('returns the time in a time zone', async () => {
    const { utc, unix_seconds, local } = (await call('now', {
      time_zone: 'Asia/Kolkata',
    })) as { utc: string; unix_seconds: number; local: string };
    expect(Date.parse(utc)).toBeGreaterThanOrEqual(unix_seconds * 1_000);
    expect(Date.parse(`${local}Z`) - unix_seconds * 1_000).toBe(5.5 * 3_600_000);
    await expect(call('now', { time_zone: 'Mars/Crater' })).rejects.toThrow(
      new ToolFailure('time_zone must be an IANA name, such as Europe/Lisbon.'),
    );
  });
});

describe('note', () => {
  const write = (name: string, text: string, runId?: string) =>
    call('note', { action: 'write', name, text }, runId);
  const read = (name: string, runId?: string) => call('note', { action: 'read', name }, runId);

  it('keeps the notes of a run when the tools are created again', async () => {
    expect(await call('note', { action: 'list' })).toEqual({ notes: [] });
    await write('plan', 'first');
    await write('plan', 'Größe');
    expect(await read('plan')).toEqual({ name: 'plan', text: 'Größe' });
    expect(await call('note', { action: 'list' })).toEqual({
      notes: [{ name: 'plan', size_bytes: 7 }],
    });
    await expect(read('plan', 'run_2')).rejects.toThrow('Note plan does not exist.');
  });

  it('names the exceeded limit or the missing argument', async () => {
    const text = 'x'.repeat(16_384);
    await expect(write('big', `${text}x`)).rejects.toThrow('at most 16384 bytes');
    await expect(call('note', { action: 'write', name: 'a' })).rejects.toThrow('text is');
    await expect(call('note', { action: 'read' })).rejects.toThrow('name is required to read.');
    for (let n = 0; n < 16; n += 1) await write(`n${n}`, text, 'run_full');
    await expect(write('one', 'x', 'run_full')).rejects.toThrow('at most 262144 bytes');
    expect(await write('n0', 'x', 'run_full')).toEqual({ name: 'n0', size_bytes: 1 });
    for (let n = 0; n < 64; n += 1) await write(`n${n}`, 'x', 'run_many');
    await expect(write('one', 'x', 'run_many')).rejects.toThrow('A run keeps at most 64 notes.');
  });
});
