import { describe, expect, it } from 'vitest';
import { assertMayHalt, assertMayLift, type HaltingPerson, maySeeHalt } from './halt-rights.ts';

const ADMIN: HaltingPerson = { tenant: 'acme', isOperator: false };
const OPERATOR: HaltingPerson = { tenant: 'ops', isOperator: true };
const RUN = { tenant: 'acme', runId: 'run-1' };
const OTHERS_RUN = { tenant: 'rivals', runId: 'run-1' };

describe('who may halt', () => {
  it('is an admin for the own tenant, and an operator for all (SV-9, SYS-6)', () => {
    for (const scope of [{ tenant: 'acme' }, RUN, { ...RUN, instance: 'lead-1' }]) {
      expect(() => assertMayHalt(ADMIN, scope)).not.toThrow();
    }
    for (const scope of [{}, { tenant: 'acme' }, RUN, OTHERS_RUN]) {
      expect(() => assertMayHalt(OPERATOR, scope)).not.toThrow();
    }
  });

  it.each([
    [{}, 'OPERATOR_REQUIRED'],
    [{ tenant: 'rivals' }, 'OPERATOR_REQUIRED'],
    [OTHERS_RUN, 'RUN_NOT_FOUND'],
    [{ ...OTHERS_RUN, instance: 'lead-1' }, 'RUN_NOT_FOUND'],
  ])('is no admin for %j: %s (SV-9, SYS-6)', (scope, reason) => {
    expect(() => assertMayHalt(ADMIN, scope)).toThrow(expect.objectContaining({ reason }));
  });
});

describe('who may lift a halt', () => {
  const halt = (scope: object, orderedFor: string) => ({ haltId: 'hlt-1', scope, orderedFor });

  it('is who could have ordered it from there (SV-9)', () => {
    expect(() => assertMayLift(ADMIN, halt(RUN, 'acme'))).not.toThrow();
    for (const scope of [{}, RUN, { tenant: 'rivals' }]) {
      expect(() => assertMayLift(OPERATOR, halt(scope, 'acme'))).not.toThrow();
    }
  });

  it.each([
    [RUN, 'ops', 'OPERATOR_REQUIRED'],
    [{ tenant: 'acme' }, 'ops', 'OPERATOR_REQUIRED'],
    [{}, 'acme', 'OPERATOR_REQUIRED'],
    [OTHERS_RUN, 'rivals', 'HALT_NOT_FOUND'],
  ])(
    'is no admin for %j that was ordered for %s: %s (SV-9, SYS-6)',
    (scope, orderedFor, reason) => {
      expect(() => assertMayLift(ADMIN, halt(scope, orderedFor))).toThrow(
        expect.objectContaining({ reason }),
      );
    },
  );

  it('sees what stops the own tenant, and nothing of another one (SV-9, SYS-6)', () => {
    expect([{}, RUN, OTHERS_RUN].map((scope) => maySeeHalt(ADMIN, { scope }))).toEqual([
      true,
      true,
      false,
    ]);
    expect(maySeeHalt(OPERATOR, { scope: OTHERS_RUN })).toBe(true);
  });
});
