import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AllowRule, createRegistry, EVERY } from './registry.ts';

const NAMES = ['anna', 'max', 'eve'];
const TOOLS = ['pay', 'look'];

const allowlist = fc.option(
  fc.dictionary(fc.constantFrom(...NAMES, EVERY), fc.uniqueArray(fc.constantFrom(...TOOLS, EVERY))),
  { nil: undefined },
);

describe('the allowlists of a registry', () => {
  it('allow the same calls as the rules of each tool (TG-2)', () => {
    const matches = (rule: AllowRule | undefined, name: string) =>
      rule === undefined || rule.names.includes(name) !== rule.except;
    fc.assert(
      fc.property(allowlist, allowlist, (agents, tenants) => {
        const allow = { ...(agents && { agents }), ...(tenants && { tenants }) };
        const registry = createRegistry([], allow);
        for (const tool of TOOLS) {
          const rules = registry.rulesOf(tool);
          expect(rules.agents === undefined).toBe(agents === undefined);
          for (const agentName of [...NAMES, 'unlisted']) {
            for (const tenant of [...NAMES, 'unlisted']) {
              const byTool = matches(rules.agents, agentName) && matches(rules.tenants, tenant);
              expect(byTool).toBe(registry.allows({ agentName, tenant }, tool));
            }
          }
        }
      }),
    );
  });
});
