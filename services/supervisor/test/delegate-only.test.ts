import { describe, expect, it } from 'vitest';
import { AGENTS_YAML, Family } from './family.ts';

describe('an agent with delegate_only', () => {
  it('can be started by other agents but not by clients (AG-1, SUP-9)', async () => {
    const text = AGENTS_YAML.replace('- name: scout\n', '- name: scout\n    delegate_only: true\n');
    const family = await Family.start({ config: { agents: { text, file: 'agents.yaml' } } });
    try {
      const runs = family.supervisor.runs();
      const { agents } = await runs.listAgents({});
      expect(agents.map(({ name }) => name)).toEqual(['digger', 'lead', 'outsider']);
      const start = { requestId: 'req-scout', agent: 'scout', goal: 'Look.' };
      await expect(runs.startRun(start)).rejects.toMatchObject({
        reason: 'AGENT_NOT_FOUND',
        message:
          'Agent "scout" can only be started by other agents (delegate_only). Available agents: digger, lead, outsider.',
      });
      const lead = await family.lead();
      const { child } = await lead.spawn('op-1', 'scout', 'Look it up.');
      expect(child?.name).toBe('scout');
      expect(family.supervisor.fakes.deliveries.at(-1)?.manifest?.delegateOnly).toBe(true);
    } finally {
      await family.close();
    }
  });
});
