import { canonicalDigest, type Phase } from '@writ/kernel';
import type { Action, Decision } from '../domain/calls/decision.ts';
import type { ToolOutcome } from '../domain/calls/tool-call.ts';
import type { Operation } from '../domain/journal/entry.ts';
import type { NumberedCall } from './journal/journal.ts';
import type { RunScope } from './scope.ts';
import { PeerRefusal, Stopped } from './unwinding.ts';

/** Calls the gateway to execute an approved action, or to return its recorded outcome (TG-1). */
export async function execute(
  scope: RunScope,
  { branch, position, callId, part }: NumberedCall & Pick<Operation, 'part'>,
  decision: Decision,
  action: Extract<Action, { kind: 'tool' }>,
): Promise<ToolOutcome> {
  const { session, journal, commits, steps, calls, carried, peers, progress, toolTimeoutMs } =
    scope;
  const argsDigest = canonicalDigest(action);
  const operation: Operation = { branch, position, part, kind: 'tool', argsDigest };
  const recorded = journal.recall(operation);
  if (recorded !== undefined) {
    carried.add(callId, recorded.value as ToolOutcome);
    return recorded.value as ToolOutcome;
  }
  session.check();
  await commits.beforeEffect();
  const current = await presentableWrit(scope, decision, callId);
  session.note({ type: 'tool_called' });
  progress.publishState(session.status.state);
  const outcome = await stopOnRefusal('execution', callId, () =>
    calls.call({ renewWrit: () => current.renew(), timeoutMs: toolTimeoutMs }, (options) =>
      peers.toolGateway.callTool(
        { callId, action, writ: current.writ, step: steps.current, agent: session.lease },
        options,
      ),
    ),
  );
  session.note({ type: 'tool_answered' });
  progress.publishState(session.status.state);
  carried.add(callId, outcome);
  journal.record({ ...operation, value: outcome }, false);
  return outcome;
}

/** Stops the agent in `phase` when a peer refuses permanently. */
export async function stopOnRefusal<T>(
  phase: Phase,
  callId: string | undefined,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof PeerRefusal)) throw error;
    const { stopReason, message } = error;
    throw new Stopped({ stopReason, phase, callId, detail: message });
  }
}

/** Returns the writ of a decision, renewed when it has expired (TG-1). */
async function presentableWrit(scope: RunScope, decision: Decision, callId: string) {
  const { calls, peers, session } = scope;
  const current = {
    writ: decision.writ ?? '',
    async renew() {
      const fresh = await stopOnRefusal('execution', callId, () =>
        calls.call({ audience: 'supervisor', acts: true }, (options) =>
          peers.supervisor.getDecision(callId, options),
        ),
      );
      // The decision contains a new writ even if the call was already executed; the gateway then returns the recorded
      // outcome.
      current.writ = fresh.writ ?? current.writ;
    },
  };
  const now = session.meta.clock.now().getTime();
  if (current.writ === '' || (decision.writExpiresAt ?? 0) <= now) await current.renew();
  if (current.writ !== '') return current;
  throw new Stopped({
    stopReason: 'error:no_writ',
    phase: 'execution',
    callId,
    detail: 'The approved action has no writ.',
  });
}
