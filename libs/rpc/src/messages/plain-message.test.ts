import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  AgentKind,
  AgentManifestSchema,
  RefusalHandling,
} from '@writ/contracts/writ/supervision/v1/manifest_pb';
import {
  ExecutionBudgetSchema,
  Priority,
} from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { InvalidRequestError } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { messageOf, plainOf } from './plain-message.ts';

const ERRORS = { field: 'manifest', reason: 'INVALID_MANIFEST' } as const;

function plain(manifest: MessageInitShape<typeof AgentManifestSchema>) {
  return plainOf(AgentManifestSchema, create(AgentManifestSchema, manifest), ERRORS);
}

describe('a plain message', () => {
  it('has milliseconds, numbers, objects and enum names instead of protobuf types (AG-1)', () => {
    const manifest = plain({
      kind: AgentKind.JSON_ACTION,
      onRefusal: RefusalHandling.TELL_MODEL,
      priority: Priority.HIGH,
      model: { model: 'm', maxOutputTokens: 7n, timeout: { seconds: 90n } },
      subAgents: [{ name: 'child', askTimeout: { seconds: 0n, nanos: 5_000_000 } }],
      chatMiddleware: [{ name: 'cache', optionsJson: '{"max_entries":5}' }],
    });
    expect(manifest).toMatchObject({
      kind: 'json-action',
      onRefusal: 'tell_model',
      priority: 'HIGH',
      model: { model: 'm', alsoAllowed: [], maxOutputTokens: 7, timeoutMs: 90_000 },
      subAgents: [{ name: 'child', askTimeoutMs: 5 }],
      chatMiddleware: [{ name: 'cache', options: { max_entries: 5 } }],
      options: {},
    });
    expect(manifest).not.toHaveProperty('retention');
    expect(manifest).not.toHaveProperty('limits');
    expect(manifest).not.toHaveProperty('approvalRequiredRisk');
  });

  it('keeps amounts of money exact (EM-4)', () => {
    const budget = { maxTokens: 4_000, maxCostNanoUsd: 9_007_199_254_740_993n, deadlineMs: 1_500 };
    const message = create(ExecutionBudgetSchema, messageOf(ExecutionBudgetSchema, budget));
    expect(message).toMatchObject({ maxTokens: 4_000n, maxCostNanoUsd: 9_007_199_254_740_993n });
    expect(plainOf(ExecutionBudgetSchema, message, ERRORS)).toEqual(budget);
  });

  it('converts back to the same message (AG-1)', () => {
    const message = create(AgentManifestSchema, {
      name: 'a',
      kind: AgentKind.USER_PROXY,
      priority: Priority.BACKGROUND,
      limits: { maxSteps: 0 },
      guardrails: { reserveTokens: 0n, reserveCostFraction: 0.5 },
      context: { strategies: [{ name: 'truncate', optionsJson: '{"max_characters":9}' }] },
      executionBudget: { maxCostNanoUsd: 3n, deadline: { seconds: 1n } },
      followTopics: ['a', 'b'],
      unreviewedDeltas: true,
      optionsJson: '{"steps":["b"]}',
    });
    const again = messageOf(AgentManifestSchema, plainOf(AgentManifestSchema, message, ERRORS));
    expect(create(AgentManifestSchema, again)).toEqual({
      ...message,
      context: { ...message.context, optionsJson: '{}' },
    });
  });

  it.each([
    [{ optionsJson: '[1]' }, 'manifest.options_json', 'INVALID_MANIFEST'],
    [{ optionsJson: '{' }, 'manifest.options_json', 'INVALID_JSON'],
    [
      { chatMiddleware: [{ name: 'a' }, { name: 'b', optionsJson: '3' }] },
      'manifest.chat_middleware[1].options_json',
      'INVALID_MANIFEST',
    ],
  ])('names the field of %j that is not a JSON object (SYS-3)', (manifest, field, reason) => {
    let thrown: unknown;
    try {
      plain(manifest);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(InvalidRequestError);
    expect(thrown).toMatchObject({ reason, metadata: { field } });
  });
});
