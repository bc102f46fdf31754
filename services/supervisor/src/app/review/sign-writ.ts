import { mintWrit, type SignedToken } from '@writ/identity';
import { InternalError } from '@writ/kernel';
import { resultFieldsFor } from '@writ/policy';
import type { SupervisorContext } from '../../context.ts';
import { actionFrom } from '../../domain/result/recorded-action.ts';
import type { DecisionRow } from '../../store/review/decisions.ts';
import type { Acting } from './review-subject.ts';

/** What a writ is signed with. */
export type WritDesk = Pick<SupervisorContext, 'signer' | 'policy' | 'config' | 'clock' | 'events'>;

/** The columns that tell of the last writ of a decision. */
export type WritColumns = Pick<DecisionRow, 'writ_count' | 'last_writ_id' | 'last_writ_expires_at'>;

/** Whether a decision lets a tool be called: only then there is something to order. */
export function ordersCall(row: DecisionRow): boolean {
  return row.args_sha256 !== null;
}

/**
 * Signs the order for an approved tool call: exactly the arguments, definition and decision of its
 * row (TG-1, SV-6). Sign before the commit, so that a decision that cannot be ordered is none.
 */
export async function signWrit(
  { signer, policy, config, events }: WritDesk,
  { key, run, ref, agent, manifest }: Acting,
  row: DecisionRow,
): Promise<SignedToken> {
  const action = actionFrom(row.executed_action);
  const { args_sha256: argsSha256, definition_digest: definitionDigest, executed_from } = row;
  if (action?.kind !== 'tool' || !argsSha256 || !definitionDigest || executed_from === null) {
    throw new InternalError('WRIT_NOT_APPLICABLE', `Decision ${row.decision_id} approves no call.`);
  }
  const { maxToolCalls } = manifest.limits;
  events.writMinted(executed_from);
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
      ...(maxToolCalls !== undefined && { maxToolCalls }),
      allowedTools: JSON.parse(agent.tools) as string[],
      resultFields: [...resultFieldsFor(policy, action.name)],
      sessionId: run.session_id,
    },
    config.writTtlMs,
  );
}

/** What a fresh writ makes of the columns that tell of it. */
export function writColumns(row: DecisionRow, writ: SignedToken): WritColumns {
  return {
    writ_count: row.writ_count + 1,
    last_writ_id: writ.id,
    last_writ_expires_at: writ.expireTime,
  };
}
