import { type HookEvent, HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { type Action, ExecutedFrom } from '@writ/contracts/writ/review/v1/action_pb';
import { type Decision, Verdict } from '@writ/contracts/writ/review/v1/decision_pb';
import type { RunEvent } from '@writ/contracts/writ/run/v1/run_pb';
import { codeWaitFrom, codeWaitSentence, formatUsd } from '@writ/kernel/portable';
import { actionJson } from './result-json.ts';
import { wordOf } from './word-of.ts';

/**
 * A line about an event, with the same wording in the CLI and the console (PE-2). Before output, pass the text through
 * `printable`.
 */
export interface ShownLine {
  /** One word, such as `proposes`, `escalate` or `executed`. */
  readonly label: string;
  readonly text: string;
  /** Number of the step on its first line, which is the line of the model call; zero on every other line. */
  readonly step: number;
}

/** Returns the lines about an event; most events have none. `costNanoUsd` is the cost of the run with this event. */
export function eventLines({ entry }: RunEvent, costNanoUsd: bigint): ShownLine[] {
  if (entry.case === 'decision') return decisionLines(entry.value);
  return entry.case === 'hook' ? hookLines(entry.value, costNanoUsd) : [];
}

/** The cost that an event adds to its run. */
export function costOf({ entry }: RunEvent): bigint {
  const isModelCall = entry.case === 'hook' && entry.value.type === HookEventType.LLM_END;
  return isModelCall ? entry.value.costNanoUsd : 0n;
}

function hookLines(event: HookEvent, costNanoUsd: bigint): ShownLine[] {
  switch (event.type) {
    case HookEventType.LLM_END: {
      const text = `${took(event)}, ${formatUsd(costNanoUsd)} USD so far${problemOf(event)}`;
      return [shown('model', text, event.step)];
    }
    case HookEventType.TOOL_END:
      return [shown('executed', `by ${event.emitter}, ${took(event)}: ${event.status}`)];
    case HookEventType.APPROVAL_REQUESTED:
      return [shown('waits', `for a person: approval ${event.approvalId}`)];
    case HookEventType.AGENT_SUSPENDED:
      return codeWaitLines(event);
    default:
      return [];
  }
}

function codeWaitLines({ agent, waitingFor }: HookEvent): ShownLine[] {
  const wait = codeWaitFrom(waitingFor);
  return wait === undefined ? [] : [shown('waits', codeWaitSentence(agent?.instance ?? '', wait))];
}

function decisionLines(decision: Decision): ShownLine[] {
  if (decision.humanApproval !== undefined) return humanLines(decision);
  const proposed = decision.action === undefined ? 'no valid action' : shortAction(decision.action);
  const lines = [
    shown('proposes', proposed),
    shown(wordOf(Verdict, decision.verdict), decision.reason || decision.stopReason),
  ];
  if (decision.revisedAction !== undefined) {
    lines.push(shown('revised', `to ${shortAction(decision.revisedAction)}`));
  }
  return lines;
}

function humanLines(decision: Decision): ShownLine[] {
  const human = decision.humanApproval;
  const lines = [
    shown(
      human?.approved ? 'approved' : 'rejected',
      `${human?.basis || decision.stopReason || human?.comment} by ${human?.decidedBy || 'no approver'}`,
    ),
  ];
  if (
    decision.executedFrom === ExecutedFrom.HUMAN_REVISED &&
    decision.executedAction !== undefined
  ) {
    lines.push(shown('edited', `to ${shortAction(decision.executedAction)}`));
  }
  return lines;
}

function shown(label: string, text: string, step = 0): ShownLine {
  return { label, text, step };
}

/** An action as one readable line. */
export function shortAction(action: Action): string {
  const { kind, name, args, answer, agent, task } = actionJson(action);
  if (kind === 'tool') return `${name} ${JSON.stringify(args)}`;
  if (kind === 'client_tool') return `${name} ${JSON.stringify(args)} (executed by the client)`;
  return kind === 'delegation' ? `handoff to ${agent}: ${task}` : `final: ${answer}`;
}

/** Returns the status of a failed model call as a suffix; empty if the call succeeded. */
function problemOf({ status }: HookEvent): string {
  return status === 'ok' || status === '' ? '' : `: ${status}`;
}

function took(event: HookEvent): string {
  const { seconds = 0n, nanos = 0 } = event.duration ?? {};
  return `${Math.round(Number(seconds) * 1000 + nanos / 1e6)} ms`;
}
