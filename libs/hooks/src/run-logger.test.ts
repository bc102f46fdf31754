import { describe, expect, it } from 'vitest';
import { llmEnd, watched } from '../test/hook-events.ts';
import { toHookContext } from './hook-context.ts';
import { RunLogger } from './run-logger.ts';

describe('RunLogger', () => {
  it('keeps the last events only (HK-3)', async () => {
    const { manager } = watched();
    const logger = new RunLogger(2);
    manager.register(logger.hooks);
    for (const id of ['e1', 'e2', 'e3']) await manager.dispatch(toHookContext(llmEnd(id)));
    expect(logger.events().map(({ event_id }) => event_id)).toEqual(['e2', 'e3']);
    expect(logger.events('run-2')).toEqual([]);
  });
});
