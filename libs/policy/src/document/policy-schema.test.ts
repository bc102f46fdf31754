import { compileSchema, type JsonObject } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { loadPolicy } from './load.ts';
import { POLICY_SCHEMA } from './policy-schema.ts';

describe('the JSON Schema of policies', () => {
  const isValid = compileSchema(POLICY_SCHEMA as unknown as JsonObject);

  it.each([
    ['HIGH', true],
    [['LOW', 'CRITICAL'], true],
    ['high', false],
    [['LOW', 'H*'], false],
    [[], false],
  ])(
    'agrees with the loader on whether match.priority %j is valid: %s (SV-3)',
    (priority, valid) => {
      const rule = { id: 'a', match: { priority }, decide: 'approve', reason: 'r' };
      const document = { policy: 'p', rules: [rule] };
      const load = () => loadPolicy(JSON.stringify(document), { file: 'p.yaml' });
      expect(isValid(document as JsonObject)).toBe(valid);
      if (valid) load();
      else expect(load).toThrow('match.priority');
    },
  );
});
