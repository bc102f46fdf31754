import type { HookEvent } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import type { RunEvent } from '@writ/contracts/writ/run/v1/run_pb';
import { toHookContext } from './hook-context.ts';
import type { HookManager } from './hook-manager.ts';

/**
 * Gives a manager the hook events among a run's events, in their order, for programs that have no bus
 * but the public door: `followEvents(client.runs.watchRun({ runId }), manager)`. Resolves when the run
 * has ended; rejects when the stream does. The events are passed on as they were.
 */
export async function followEvents(
  events: AsyncIterable<Pick<RunEvent, 'entry'>>,
  manager: HookManager,
): Promise<void> {
  for await (const event of events) {
    const hook = hookOf(event);
    if (hook !== undefined) await manager.dispatch(toHookContext(hook));
  }
}

function hookOf({ entry }: Pick<RunEvent, 'entry'>): HookEvent | undefined {
  return entry.case === 'hook' ? entry.value : undefined;
}
