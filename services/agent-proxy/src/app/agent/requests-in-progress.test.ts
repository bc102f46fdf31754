import { expect, it } from 'vitest';
import { agentRow } from '../../../test/agent-row.ts';
import { keyOf } from '../../store/agents.ts';
import { RequestsInProgress } from './requests-in-progress.ts';

it('ends only the requests of the agent that has ended, with an error that names it (AP-6)', () => {
  const open = new RequestsInProgress(1);
  const [root, child] = ['root', 'child'].map((name) => agentRow(name, new Date(0)));
  if (root === undefined || child === undefined) throw new Error('There is no agent.');
  const ofRoot = open.begin(root);
  const ofChild = open.begin(child);
  open.abort(keyOf(child), 'halted');
  expect(ofRoot.signal.aborted).toBe(false);
  expect(ofChild.signal.reason).toMatchObject({
    reason: 'RUN_ENDED',
    message: 'Agent child of run run-1 has ended: halted.',
    metadata: { run_id: 'run-1', agent: 'child', stop_reason: 'halted' },
  });
});

const AGENT = agentRow('root', new Date(0));
const DRAINING = { kind: 'unavailable', reason: 'DRAINING' };

it('aborts requests that wait for a person immediately, and the others after the grace period (SYS-4)', async () => {
  const requests = new RequestsInProgress(10);
  const [waiting, active] = [requests.begin(AGENT), requests.begin(AGENT)];
  waiting.isWaiting = true;
  const drained = requests.drain(100);
  expect(waiting.signal.reason).toMatchObject(DRAINING);
  expect(active.signal.aborted).toBe(false);
  await drained;
  expect(active.signal.reason).toMatchObject(DRAINING);
});

it('ends the drain when no request is in progress, and rejects new requests (SYS-4)', async () => {
  const requests = new RequestsInProgress(10);
  const active = requests.begin(AGENT);
  const drained = requests.drain(600_000);
  active.end();
  await drained;
  expect(active.signal.aborted).toBe(false);
  expect(() => requests.begin(AGENT)).toThrow('agent-proxy is shutting down');
});
