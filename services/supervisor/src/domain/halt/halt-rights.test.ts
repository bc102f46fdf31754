import { describe, expect, it } from 'vitest';
import { assertMayHalt, assertMayLift, type HaltingPerson, maySeeHalt } from './halt-rights.ts';

const ADMIN: HaltingPerson = { tenant: 'acme', isOperator: false };
const OPERATOR: HaltingPerson = { tenant: 'ops', isOperator: true };
const RUN = { tenant: 'acme', runId: 'run-1' };
const OTHER_TENANTS_RUN = { tenant: 'rivals', runId: 'run-1' };

describe('assertMayHalt', () => {
  it('allows an admin to halt their own tenant, and an operator to halt everything (SV-9, SYS-6)', () => {
    for (const scope of [{ tenant: 'acme' }, RUN, { ...RUN, instance: 'lead-1' }]) {
      expect(() => assertMayHalt(ADMIN, scope)).not.toThrow();
    }
    for (const scope of [{}, { tenant: 'acme' }, RUN, OTHER_TENANTS_RUN]) {
      expect(() => assertMayHalt(OPERATOR, scope)).not.toThrow();
    }
  });

  it.each([
    [{}, 'OPERATOR_REQUIRED'],
    [{ tenant: 'rivals' }, 'OPERATOR_REQUIRED'],
    [OTHER_TENANTS_RUN, 'RUN_NOT_FOUND'],
    [{ ...OTHER_TENANTS_RUN, instance: 'lead-1' }, 'RUN_NOT_FOUND'],
  ])('does not let an admin halt %j: %s (SV-9, SYS-6)', (scope, reason) => {
    expect(() => assertMayHalt(ADMIN, scope)).toThrow(expect.objectContaining({ reason }));
  });
});

describe('assertMayLift', () => {
  const halt = (scope: object, orderedFor: string) => ({ haltId: 'hlt-1', scope, orderedFor });

  it('lets an admin lift a halt of their tenant that this tenant ordered, and an operator every halt (SV-9)', () => {
    expect(() => assertMayLift(ADMIN, halt(RUN, 'acme'))).not.toThrow();
    for (const scope of [{}, RUN, { tenant: 'rivals' }]) {
      expect(() => assertMayLift(OPERATOR, halt(scope, 'acme'))).not.toThrow();
    }
  });

  it.each([
    [RUN, 'ops', 'OPERATOR_REQUIRED'],
    [{ tenant: 'acme' }, 'ops', 'OPERATOR_REQUIRED'],
    [{}, 'acme', 'OPERATOR_REQUIRED'],
    [OTHER_TENANTS_RUN, 'rivals', 'HALT_NOT_FOUND'],
  ])(
    'does not let an admin lift a halt of %j that tenant %s ordered: %s (SV-9, SYS-6)',
    (scope, orderedFor, reason) => {
      expect(() => assertMayLift(ADMIN, halt(scope, orderedFor))).toThrow(
        expect.objectContaining({ reason }),
      );
    },
  );

  it('shows an admin only the halts that stop their own tenant (SV-9, SYS-6)', () => {
    expect([{}, RUN, OTHER_TENANTS_RUN].map((scope) => maySeeHalt(ADMIN, { scope }))).toEqual([
      true,
      true,
      false,
    ]);
    expect(maySeeHalt(OPERATOR, { scope: OTHER_TENANTS_RUN })).toBe(true);
  });
});
