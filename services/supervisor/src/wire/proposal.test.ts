import { create } from '@bufbuild/protobuf';
import { SpawnChildRequestSchema } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { expect, it } from 'vitest';
import { proposalDigest } from '../domain/review/proposal.ts';
import { delegationFrom } from './proposal.ts';

const digestOf = (more: {
  readonly receipts?: string[];
  readonly observations?: { callId: string; content: string }[];
  readonly events?: { event: Uint8Array }[];
  readonly models?: string[];
}) => {
  const delegation = { agent: 'scout', task: 'Look.' };
  return proposalDigest(
    delegationFrom(create(SpawnChildRequestSchema, { callId: 'op-1', delegation, ...more })),
  );
};

it('the digest of a delegation is the same when a worker repeats it with other receipts, observations and events (RT-1)', () => {
  expect(digestOf({ receipts: ['receipt'] })).toBe(digestOf({}));
  expect(digestOf({ observations: [{ callId: 'op-0', content: 'seen' }] })).toBe(digestOf({}));
  expect(digestOf({ events: [{ event: new Uint8Array([1]) }] })).toBe(digestOf({}));
  expect(digestOf({ models: ['other'] })).not.toBe(digestOf({}));
});
