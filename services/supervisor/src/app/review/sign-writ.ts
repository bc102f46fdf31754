import { mintWrit, type SignedToken } from '@writ/identity';
import { InternalError, omitUndefined } from '@writ/kernel';
import { resultFieldsFor } from '@writ/policy';
import type { Tx } from '../../context.ts';
import { actionFrom } from '../../domain/result/recorded-action.ts';
import type { DecisionRow } from '../../store/review/decisions.ts';
import type { ReviewSubject } from './review-subject.ts';

/** The columns that describe the last writ of a decision. */
export type WritColumns = Pick<DecisionRow, 'writ_count' | 'last_writ_id' | 'last_writ_expires_at'>;

/** Whether a decision approves a tool call; only such a decision gets a writ. */
export function approvesCall(row: DecisionRow): boolean {
  return row.args_sha256 !== null;
}

/**
 * Signs the writ of an approved tool call: exactly the arguments, definition and decision of its row (TG-1, SV-6).
 * Callers sign before the commit, so that a decision is not recorded if its writ cannot be signed.
 * @throws InternalError WRIT_NOT_APPLICABLE
 */
export async function signWrit(
  { trx, context: { signer, policy, config, events } }: Tx,
  { key, run, ref, agent, manifest }: ReviewSubject,
  row: DecisionRow,
): Promise<SignedToken> {
  const action = actionFrom(row.executed_action);
  const { args_sha256: argsSha256, definition_digest: definitionDigest, executed_from } = row;
  if (action?.kind !== 'tool' || !argsSha256 || !definitionDigest || executed_from === null) {
    throw new InternalError(
      'WRIT_NOT_APPLICABLE',
      `Decision ${row.decision_id} approves no tool call.`,
    );
  }
  const { maxToolCalls } = manifest.limits;
  events.writMinted(trx, executed_from);
  return await mintWrit(
    signer,
    {
      tenant: key.tenant,
      runId: key.runId,
      agent: ref,
      callId: row.call_id,
      tool: action.name,
      definitionDigest,
      argsSha256,
      decisionId: row.decision_id,
      policyVersion: row.policy_version,
      executedFrom: executed_from,
      ...omitUndefined({ maxToolCalls }),
      allowedTools: JSON.parse(agent.tools) as string[],
      resultFields: [...resultFieldsFor(policy, action.name)],
      sessionId: run.session_id,
      ...(manifest.kind === 'external' && { noDefaultLimits: true }),
    },
    config.writTtlMs,
  );
}

/** The values of {@link WritColumns} after another writ. */
export function writColumns(row: DecisionRow, writ: SignedToken): WritColumns {
  return {
    writ_count: row.writ_count + 1,
    last_writ_id: writ.id,
    last_writ_expires_at: writ.expireTime,
  };
}
