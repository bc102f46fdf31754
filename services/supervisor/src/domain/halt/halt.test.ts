import { covers, type Scope, type ScopeSubject } from '@writ/kernel';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Halt, haltedError, haltsCovering } from './halt.ts';

const TENANTS = ['acme', 'rivals'];
const RUNS = ['run-1', 'run-2'];
const AGENTS = ['lead', 'scout'];

const ALL_AGENTS: readonly Required<ScopeSubject>[] = TENANTS.flatMap((tenant) =>
  RUNS.flatMap((runId) => AGENTS.map((instance) => ({ tenant, runId, instance }))),
);

const scopes: fc.Arbitrary<Scope> = fc.oneof(
  fc.constant({}),
  fc.record({ tenant: fc.constantFrom(...TENANTS) }),
  fc.record({ tenant: fc.constantFrom(...TENANTS), runId: fc.constantFrom(...RUNS) }),
  fc.record({
    tenant: fc.constantFrom(...TENANTS),
    runId: fc.constantFrom(...RUNS),
    instance: fc.constantFrom(...AGENTS),
  }),
);

type Change =
  | { readonly type: 'halt'; readonly scope: Scope }
  | { readonly type: 'resume'; readonly which: number }
  | { readonly type: 'end'; readonly tenant: string; readonly runId: string };

const changes: fc.Arbitrary<readonly Change[]> = fc.array(
  fc.oneof(
    fc.record({ type: fc.constant('halt' as const), scope: scopes }),
    fc.record({ type: fc.constant('resume' as const), which: fc.nat({ max: 12 }) }),
    fc.record({
      type: fc.constant('end' as const),
      tenant: fc.constantFrom(...TENANTS),
      runId: fc.constantFrom(...RUNS),
    }),
  ),
  { maxLength: 24 },
);

/** A plain model: the set of halt ids of each agent. */
class Model {
  readonly #halts = new Map(ALL_AGENTS.map((agent) => [agent, new Set<string>()]));

  halt(haltId: string, { tenant, runId, instance }: Scope): void {
    for (const [agent, halts] of this.#halts) {
      if (tenant !== undefined && tenant !== agent.tenant) continue;
      if (runId !== undefined && runId !== agent.runId) continue;
      if (instance !== undefined && instance !== agent.instance) continue;
      halts.add(haltId);
    }
  }

  resume(haltId: string): void {
    for (const halts of this.#halts.values()) halts.delete(haltId);
  }

  over(agent: Required<ScopeSubject>): string[] {
    return [...(this.#halts.get(agent) ?? [])];
  }
}

describe('halts', () => {
  it('cover an agent until each halt is lifted, regardless of other halts and ended runs (SV-9)', () => {
    fc.assert(
      fc.property(changes, (steps) => {
        const model = new Model();
        let halts: Halt[] = [];
        for (const [index, step] of steps.entries()) {
          const at = new Date(index * 1_000);
          if (step.type === 'halt') {
            const haltId = `hlt-${String(halts.length).padStart(2, '0')}`;
            model.halt(haltId, step.scope);
            const { scope } = step;
            const halt = { haltId, scope, reason: 'r', orderedBy: 'anna', orderedAt: at };
            halts = [...halts, { ...halt, liftedAt: null }];
          } else if (step.type === 'resume') {
            const lifted = halts[step.which];
            if (lifted !== undefined) model.resume(lifted.haltId);
            halts = halts.map((halt) => (halt === lifted ? { ...halt, liftedAt: at } : halt));
          }
          // A step that ends a run does not change the halts.
          for (const agent of ALL_AGENTS) {
            expect(haltsCovering(halts, agent).map(({ haltId }) => haltId)).toEqual(
              model.over(agent),
            );
          }
        }
      }),
      { numRuns: 200 },
    );
  });

  it('of a run do not cover its tenant, and halts of an agent do not cover its run (SV-9)', () => {
    fc.assert(
      fc.property(scopes, (scope) => {
        const { tenant, runId, instance } = scope;
        expect(covers(scope, { tenant: 'acme' })).toBe(
          runId === undefined && (tenant === undefined || tenant === 'acme'),
        );
        expect(covers(scope, { tenant: 'acme', runId: 'run-1' })).toBe(
          instance === undefined &&
            (tenant === undefined || tenant === 'acme') &&
            (runId === undefined || runId === 'run-1'),
        );
      }),
    );
  });

  it('name who ordered them and why (SV-9)', () => {
    const halt: Halt = {
      haltId: 'hlt-1',
      scope: { tenant: 'acme', runId: 'run-1' },
      reason: 'Too many refunds.',
      orderedBy: 'anna',
      orderedAt: new Date(0),
      liftedAt: null,
    };
    expect(haltedError(halt)).toMatchObject({
      reason: 'HALTED',
      message: 'Halted by anna: Too many refunds.',
      metadata: { halt_id: 'hlt-1', halted_by: 'anna', scope: 'acme/run-1' },
    });
  });
});
