import type { HookEvent } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import type { RunEvent } from '@writ/contracts/writ/run/v1/run_pb';
import { knownHookContext } from './hook-context.ts';
import type { HookManager } from './hook-manager.ts';

/**
 * Dispatches the hook events of a watched run to a manager, in order. It is intended for programs that have access only
 * to the public API. Skips events of types that this version does not support (BD-6). Resolves when the run has ended.
 * @throws the error of the stream
 *
 * @example
 * ```ts
 * import { createWritClient } from '@writ/client';
 * import { followEvents, HookManager } from '@writ/hooks';
 *
 * const client = createWritClient({ baseUrl: 'http://127.0.0.1:8080', apiKey: 'writ_…' });
 * const hooks = new HookManager({ onProblem: (problem) => console.error(problem) });
 * hooks.on('TOOL_END', ({ tool_name, status }) => console.log(tool_name, status));
 * await followEvents(client.runs.watchRun({ runId: 'run_1' }), hooks);
 * ```
 */
export async function followEvents(
  events: AsyncIterable<WatchedEvent>,
  manager: HookManager,
): Promise<void> {
  for await (const event of events) {
    const hook = hookOf('entry' in event ? event : event.event);
    const context = hook && knownHookContext(hook);
    if (context !== undefined) await manager.dispatch(context);
  }
}

/** A response of `WatchRun`, or the event in it. */
type WatchedEvent =
  | Pick<RunEvent, 'entry'>
  | { readonly event?: Pick<RunEvent, 'entry'> | undefined };

function hookOf(event: Pick<RunEvent, 'entry'> | undefined): HookEvent | undefined {
  return event?.entry.case === 'hook' ? event.entry.value : undefined;
}
