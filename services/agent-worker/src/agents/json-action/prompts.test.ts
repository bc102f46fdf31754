import type { JsonObject } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { manifestOf } from '../../../test/manifest.ts';
import type { Decision } from '../../domain/calls/decision.ts';
import type { ChatTurn } from '../../domain/calls/model-call.ts';
import { type HistoryEntry, historyEntry } from './history.ts';
import { decideRequest, synthesisRequest, taskOf } from './prompts.ts';

const manifest = manifestOf({
  name: 'refund-worker',
  kind: 'json-action',
  instructions: 'Decide.',
  finalInstructions: 'Compose.',
  model: { model: 'refund-worker', alsoAllowed: [], jsonMode: true, timeoutMs: 300 },
  tools: ['issue_refund'],
});

const refund = (amount: number) =>
  ({
    kind: 'tool',
    tool: 'issue_refund',
    argumentsJson: `{"amount_usd":${amount},"user_id":42}`,
  }) as const;

const decision: Decision = {
  decisionId: 'dec-1',
  callId: 'op-2',
  verdict: 'escalate',
  reason: 'high_refund_requires_human',
  action: refund(1200),
  executedAction: refund(800),
  executedFrom: 'human_revised',
  approvalId: 'apr-1',
  humanApproval: { approved: true, comment: '', basis: 'approved_with_cap:800' },
  settled: true,
  stopReason: '',
  runEnded: false,
};

const tools = [
  {
    name: 'issue_refund',
    description: 'Issue refund in USD',
    inputSchemaJson: JSON.stringify({
      type: 'object',
      properties: {
        user_id: { type: 'integer' },
        amount_usd: { type: ['number', 'string'] },
        reason: { type: 'string', fillable: true },
        speed: { enum: ['slow', 'fast'] },
        note: {},
      },
      required: ['user_id', 'amount_usd', 'reason'],
    }),
  },
];

function promptOf(history: readonly HistoryEntry[]): JsonObject {
  const { messages } = decideRequest(manifest, { goal: 'Refund.' }, history, tools);
  return JSON.parse(textOf(messages[1])) as JsonObject;
}

function textOf(turn: ChatTurn | undefined): string {
  return turn?.role === 'user' ? turn.text : '';
}

describe('the deciding prompt of a json-action agent', () => {
  it('requests one JSON object at temperature 0, with the manifest’s instructions (AG-2)', () => {
    const request = decideRequest(manifest, { goal: 'Refund.' }, [], tools);
    expect(request).toMatchObject({
      model: 'refund-worker',
      json: true,
      temperature: 0,
      timeoutMs: 300,
      requireContent: false,
      messages: [{ role: 'system', text: 'Decide.' }, { role: 'user' }],
    });
  });

  it('contains goal, state, recent steps and tools (AG-2)', () => {
    expect(promptOf([])).toEqual({
      goal: 'Refund.',
      state_summary: {
        steps_completed: 0,
        tools_used: {},
        supervisor_decisions: {},
        last_step: null,
      },
      recent_step_summaries: [],
      available_tools: [
        {
          name: 'issue_refund',
          description: 'Issue refund in USD',
          args: {
            user_id: 'integer',
            amount_usd: 'number or string',
            reason: 'optional string',
            speed: 'optional one of "slow", "fast"',
            note: 'optional any',
          },
        },
      ],
    });
  });

  it('contains the last step in full, and summaries of the last three steps (AG-2, SV-6)', () => {
    const history = [1, 2, 3, 4].map((step) =>
      historyEntry(step, decision, { status: 'ok', refund: { amount_usd: 800 } }),
    );
    const prompt = promptOf(history) as {
      readonly state_summary: JsonObject;
      readonly recent_step_summaries: readonly JsonObject[];
    };
    expect(prompt.state_summary).toMatchObject({
      steps_completed: 4,
      tools_used: { issue_refund: 4 },
      supervisor_decisions: { escalate: 4 },
      last_step: {
        step: 4,
        action: { kind: 'tool', name: 'issue_refund', args: { user_id: 42, amount_usd: 1200 } },
        supervisor: { decision: 'escalate', reason: 'high_refund_requires_human' },
        executed_action: { args: { amount_usd: 800 } },
        executed_from: 'human_revised',
        observation: { status: 'ok', refund: { amount_usd: 800 } },
        human_approval: { approved: true, basis: 'approved_with_cap:800' },
      },
    });
    expect(prompt.recent_step_summaries).toEqual(
      [2, 3, 4].map((step) => ({
        step,
        proposed_tool: 'issue_refund',
        supervisor_decision: 'escalate',
        executed_tool: 'issue_refund',
        executed_from: 'human_revised',
        observation_status: 'ok',
      })),
    );
  });

  it('truncates and marks a large result (AG-2)', () => {
    const { observation } = historyEntry(1, decision, { status: 'ok', text: 'ä'.repeat(9_000) });
    expect(observation).toMatchObject({ status: 'ok', truncated: true, full_characters: 9_025 });
    expect(JSON.stringify(observation).length).toBeLessThan(4_400);
  });

  it('does not grow with the run (AG-2)', () => {
    const step = (count: number) => historyEntry(count, decision, { text: 'x'.repeat(3_000) });
    const lengthAfter = (steps: number) =>
      JSON.stringify(promptOf(Array.from({ length: steps }, (_, index) => step(index)))).length;
    // Only numbers get longer: by three digits, in seven places.
    expect(lengthAfter(4_000) - lengthAfter(4)).toBeLessThanOrEqual(21);
  });

  it('includes the payload of the request (AG-2)', () => {
    const message = {
      messageId: 'm-1',
      senderInstance: '',
      text: 'Refund.',
      correlationId: '',
      replyTo: '',
      partial: false,
    };
    expect(taskOf({ ...message, dataJson: '' })).toEqual({ goal: 'Refund.' });
    expect(taskOf({ ...message, dataJson: '{}' })).toEqual({ goal: 'Refund.' });
    expect(taskOf({ ...message, dataJson: '{"user_id":42}' })).toEqual({
      goal: 'Refund.',
      data: { user_id: 42 },
    });
  });
});

describe('the composing prompt of a json-action agent', () => {
  it('contains goal and history, and requests text (AG-2)', () => {
    const history = [historyEntry(1, decision, { status: 'ok' })];
    const request = synthesisRequest(manifest, { goal: 'Refund.' }, history);
    expect(request).toMatchObject({
      json: false,
      requireContent: true,
      messages: [{ role: 'system', text: 'Compose.' }, { role: 'user' }],
    });
    expect(JSON.parse(textOf(request.messages[1]))).toEqual({ goal: 'Refund.', history });
  });

  it('contains the end of a long history and counts of earlier steps (AG-2)', () => {
    const steps = Array.from({ length: 100 }, (_, index) => index + 1);
    const history = steps.map((step) => historyEntry(step, decision, { status: 'ok' }));
    const request = synthesisRequest(manifest, { goal: 'Refund.' }, history);
    expect(JSON.parse(textOf(request.messages[1]))).toEqual({
      goal: 'Refund.',
      state_summary: {
        steps_completed: 100,
        tools_used: { issue_refund: 100 },
        supervisor_decisions: { escalate: 100 },
      },
      history: history.slice(-32),
    });
  });
});
