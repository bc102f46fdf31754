import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { ManualClock } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { createOutboxRelay, openStore } from '../src/index.ts';
import { type LedgerDatabase, ledgerMigrations } from './ledger.ts';
import { tempFolder } from './temp-folder.ts';

const CHILD = fileURLToPath(new URL('./committing-child.ts', import.meta.url));

/** Runs a process until it has acknowledged `enough` ids, kills it, and returns the acknowledged ids. */
async function commitAndKill(file: string, generation: string, enough: number): Promise<string[]> {
  const child: ChildProcess = spawn(process.execPath, [CHILD, file, generation], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const acknowledged: string[] = [];
  if (child.stdout === null) throw new Error('the child has no output');
  for await (const id of createInterface(child.stdout)) {
    acknowledged.push(id);
    if (acknowledged.length === enough) child.kill('SIGKILL');
  }
  expect(await exited).toEqual([null, 'SIGKILL']);
  return acknowledged;
}

describe('a process killed at any instant', () => {
  it('loses no acknowledged transaction and stores no fact without its message (HK-2)', async () => {
    const folder = tempFolder();
    const file = folder.file('ledger.db');
    const acknowledged: string[] = [];
    for (const [index, enough] of [1, 150, 400].entries()) {
      acknowledged.push(...(await commitAndKill(file, `g${index}`, enough)));
    }
    expect(acknowledged.length).toBeGreaterThanOrEqual(551);
    const store = await openStore<LedgerDatabase>({
      location: { dialect: 'sqlite', file },
      migrations: ledgerMigrations,
      service: 'ledger',
    });
    const facts = (await store.db.selectFrom('entry').select('id').execute()).map(({ id }) => id);
    const published: string[] = [];
    const relay = createOutboxRelay({
      store,
      publish: async ({ eventId }) => {
        published.push(eventId);
      },
      onError: () => expect.unreachable(),
      clock: new ManualClock(),
    });
    await relay.flush();
    await store.close();
    expect(new Set(facts)).toEqual(new Set(published));
    expect(published).toHaveLength(facts.length);
    expect(acknowledged.filter((id) => !facts.includes(id))).toEqual([]);
  });
});
