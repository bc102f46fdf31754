import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';
import { HaltState } from '@writ/contracts/writ/control/v1/control_service_pb';
import type { Scope } from '@writ/contracts/writ/control/v1/freeze_pb';
import { formatUsd } from '@writ/kernel/portable';
import { wordOf } from './word-of.ts';

/** A time in UTC, to the second; empty for none. */
export function timeText(time: Timestamp | undefined): string {
  if (time === undefined) return '';
  return `${timestampDate(time).toISOString().slice(0, 19).replace('T', ' ')}Z`;
}

/** Money in USD with its unit. */
export function usdText(nanoUsd: bigint): string {
  return `${formatUsd(nanoUsd)} USD`;
}

/** An enum value in words: `RunState.WAITING_FOR_INPUT` → `waiting for input`. */
export function wordsOf(values: Readonly<Record<string, string | number>>, value: number): string {
  return wordOf(values, value).replaceAll('_', ' ');
}

const HALT_STATES: Readonly<Record<HaltState, string>> = {
  [HaltState.UNSPECIFIED]: 'unknown',
  [HaltState.PENDING]: 'pending',
  [HaltState.IN_FORCE]: 'in force',
  [HaltState.RESUMED]: 'resumed',
};

/** The state of a halt in words. */
export function haltStateText(state: HaltState): string {
  return HALT_STATES[state] ?? 'unknown';
}

/** Formats the scope of a halt: `run tenant/run`, `agent tenant/run/instance`, `tenant name` or `everything`. */
export function scopeText(scope: Scope | undefined): string {
  switch (scope?.kind.case) {
    case 'run':
      return `run ${scope.kind.value.tenant}/${scope.kind.value.runId}`;
    case 'agent': {
      const { tenant, runId, agentInstance } = scope.kind.value;
      return `agent ${tenant}/${runId}/${agentInstance}`;
    }
    case 'tenant':
      return `tenant ${scope.kind.value}`;
    default:
      return 'everything';
  }
}

/** The most informative fields of an audit record, in this order. */
const INFORMATIVE_FIELDS = [
  'agent',
  'action_name',
  'tool',
  'verdict',
  'rule',
  'state',
  'approver',
  'basis',
  'status',
  'outcome',
  'stop_reason',
  'reason',
];

/** The most informative fields of an audit record in one line, from its canonical JSON. */
export function recordFactsText(canonicalJson: string): string {
  const facts = JSON.parse(canonicalJson) as Readonly<Record<string, unknown>>;
  return INFORMATIVE_FIELDS.flatMap((name) => {
    const fact = facts[name];
    return fact ? [`${name}=${typeof fact === 'string' ? fact : JSON.stringify(fact)}`] : [];
  }).join(' ');
}
