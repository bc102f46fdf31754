import { appendFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import {
  CostTracker,
  HOOK_EVENTS,
  type HookContext,
  HookManager,
  type Hooks,
  type RunCost,
  RunLogger,
} from '@writ/hooks';
import { formatUsd, isId } from '@writ/kernel';
import type { CliIo } from '../../io.ts';

/** Maximum number of events to print for an agent that did not succeed. */
const SHOWN = 5;

/** Options of {@link createRunObserver}. */
interface RunObserverOptions extends Pick<CliIo, 'print' | 'warn'> {
  /** Folder of the logs; default: no logs are written. */
  readonly folder?: string;
}

/**
 * Creates the observers of `writ observe`: a line with the cost of each agent that ends, its last events if it did not
 * succeed, and with `folder` a log of each run in JSON lines. An event that is delivered again after a restart is in
 * the log twice, with the same event_id.
 */
export function createRunObserver({ print, warn, folder }: RunObserverOptions): HookManager {
  const hooks = new HookManager({
    onProblem: ({ event, event_id, error }) => warn(`${event} ${event_id}: ${String(error)}`),
  });
  const logger = new RunLogger();
  hooks.register(logger.hooks);
  if (folder !== undefined) hooks.register(writeLogs(folder));
  const tracker = new CostTracker((runId, total, end) => {
    print(costLine(runId, total, end));
    if (end.status === 'success') return;
    const own = logger.events(runId).filter(({ agent_id }) => agent_id === end.agent_id);
    for (const event of own.slice(-SHOWN - 1, -1)) print(eventLine(event));
  });
  hooks.register(tracker.hooks);
  return hooks;
}

function writeLogs(folder: string): Hooks {
  mkdirSync(folder, { recursive: true });
  const write = (context: HookContext): void => {
    const { run_id: runId } = context;
    // The id becomes the name of a file.
    if (!isId(runId)) return;
    appendFileSync(join(folder, `${runId}.jsonl`), `${JSON.stringify(context, asText)}\n`);
  };
  return Object.fromEntries(HOOK_EVENTS.map((event) => [event, write]));
}

function asText(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value;
}

function costLine(runId: string, total: RunCost, { agent_id, status }: HookContext): string {
  const { calls, input_tokens, output_tokens, cost_nano_usd } = total;
  return `${runId}  ${agent_id}  ${status}  ${calls} model calls  ${input_tokens} + ${output_tokens} tokens  ${formatUsd(cost_nano_usd)} USD`;
}

function eventLine({ at, event, tool_name, model, dimension, status }: HookContext): string {
  return ['', at, event, tool_name ?? model ?? dimension, status]
    .filter((it) => it !== undefined)
    .join('  ');
}
