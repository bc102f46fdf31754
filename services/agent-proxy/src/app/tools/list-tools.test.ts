import { create } from '@bufbuild/protobuf';
import { ListToolsResponseSchema } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { type AgentKey, ManualClock } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { ToolLists } from './list-tools.ts';

const CREDENTIALS = { supervisor: '', spawnBudget: '', executionMeter: '', toolGateway: '' };

const agent = (run: number): AgentKey => ({
  tenant: 'acme',
  runId: `run-${run}`,
  instance: 'assistant',
});

/** Tool lists of a gateway whose only tool has a schema of one megabyte. */
function lists() {
  const asked: string[] = [];
  const parts = {
    slots: { grant: async () => 'grant', forget: () => undefined },
    tokens: { of: async () => ({ ...CREDENTIALS, expiresAt: Number.POSITIVE_INFINITY }) },
    peers: {
      async listTools({ knownVersion }: { readonly knownVersion: string }) {
        asked.push(knownVersion);
        const tools = [{ name: 'look_up', inputSchemaJson: 'x'.repeat(1_000_000) }];
        return create(ListToolsResponseSchema, { tools, registryVersion: 'v1' });
      },
    },
  };
  const toolLists = new ToolLists(new ManualClock());
  const of = (run: number) => toolLists.of(parts, agent(run));
  return { asked, of, toolLists };
}

describe('the tool lists of agents', () => {
  it('use a limited number of bytes; the least recently used are dropped (BD-1, CO-2)', async () => {
    const { asked, of } = lists();
    for (let run = 0; run < 20; run += 1) await of(run);
    expect(asked).toHaveLength(20);
    await of(19);
    await of(8);
    expect(asked).toHaveLength(20);
    expect((await of(0)).map(({ name }) => name)).toEqual(['look_up']);
    expect(asked).toHaveLength(21);
  });

  it('are removed when the agent ends (CO-2)', async () => {
    const { asked, of, toolLists } = lists();
    await of(0);
    toolLists.forget(agent(0));
    await of(0);
    expect(asked).toEqual(['', '']);
  });
});
