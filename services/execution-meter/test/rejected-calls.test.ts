import { Dialect } from '@writ/contracts/writ/model/v1/model_pb';
import type { GenerateRequestSchema } from '@writ/contracts/writ/model/v1/model_service_pb';
import { afterEach, describe, expect, it } from 'vitest';
import { AGENT, MeterWorld, type MeterWorldOptions, RUN, TENANT } from './meter-fixture.ts';
import type { Init } from './model-calls.ts';
import { reference } from './models-yaml.ts';

let world: MeterWorld;
const start = async (options?: MeterWorldOptions): Promise<MeterWorld> => {
  world = await MeterWorld.start(options);
  await world.openTab();
  return world;
};
afterEach(async () => {
  await world[Symbol.asyncDispose]();
});

describe('a rejected call', () => {
  it('names the variable to set when the provider key is missing', async () => {
    await start({
      models: `models:\n  hello: { base_url: "${reference('SIM_URL')}", api_key_env: ACME_KEY, model: "sim:hello" }`,
    });
    const { error, finished } = await world.generate();
    expect(error).toMatchObject({ reason: 'PROVIDER_KEY_MISSING', kind: 'failed_precondition' });
    expect(error?.message).toContain('Set ACME_KEY');
    expect(finished).toBeUndefined();
  });

  it('names the missing variable of an alias, but only if the call uses this alias', async () => {
    await start({
      models: [
        'models:',
        `  hello: { base_url: "${reference('SIM_URL')}", api_key_env: SIM_KEY, model: "sim:hello" }`,
        `  extra: { base_url: "${reference('NOT_SET')}", model: x }`,
      ].join('\n'),
    });
    expect((await world.generate()).error).toBeUndefined();
    const { error } = await world.generate({ callId: 'op-2', model: 'extra' });
    expect(error).toMatchObject({ reason: 'MODEL_VARIABLE_MISSING' });
    expect(error?.message).toContain('NOT_SET');
  });

  const refused: readonly (readonly [string, Init<typeof GenerateRequestSchema>, string])[] = [
    ['an unknown model', { model: 'unknown' }, 'UNKNOWN_MODEL'],
    ['a tool choice without tools', { toolChoice: 3 }, 'INVALID_TOOL_CHOICE'],
    [
      'an invalid schema',
      { tools: [{ name: 'a', description: '', inputSchemaJson: '[]' }] },
      'INVALID_TOOL',
    ],
    [
      'an image with a file URL',
      {
        messages: [
          {
            role: 2,
            parts: [{ kind: { case: 'image' as const, value: { url: 'file:///etc/passwd' } } }],
          },
        ],
      },
      'INVALID_MESSAGE',
    ],
    [
      'a part that the role does not permit',
      {
        messages: [
          { role: 2, parts: [{ kind: { case: 'toolResult' as const, value: { content: 'x' } } }] },
        ],
      },
      'INVALID_MESSAGE',
    ],
  ];
  it.each(refused)('has a specific reason for %s', async (_, request, reason) => {
    await start();
    const { error, finished } = await world.generate(request);
    expect(error).toMatchObject({ reason });
    expect(finished).toBeUndefined();
  });

  it('names the field of a native request whose body is not an object (AP-2)', async () => {
    await start();
    const native = { dialect: Dialect.OPENAI_CHAT, bodyJson: Buffer.from('[]') };
    const { error } = await world.generate({ messages: [], native });
    expect(error).toMatchObject({
      reason: 'NATIVE_FIELD_NOT_ALLOWED',
      metadata: { field: 'native.body_json' },
    });
  });

  it('is denied for a model that the tab does not list (EM-6)', async () => {
    await start();
    await world.openTab({ agent: { name: 'support', instance: 'narrow' }, models: [] });
    const { error } = await world.generate({}, await world.credentials('narrow'));
    expect(error).toMatchObject({ reason: 'MODEL_NOT_ALLOWED', kind: 'permission_denied' });
  });

  it('is rejected if the tab does not exist or is closed', async () => {
    await start();
    const none = await world.generate({}, await world.credentials('missing'));
    expect(none.error).toMatchObject({ reason: 'TAB_NOT_FOUND' });
    const tab = { tenant: TENANT, runId: RUN, agentInstance: AGENT };
    await world.tab.closeTab({ tab, requestId: 'close-1' });
    const closed = await world.generate();
    expect(closed.error).toMatchObject({ reason: 'TAB_CLOSED', kind: 'failed_precondition' });
  });

  it('is rejected if its epoch is lower than the highest one seen, even if its answer is recorded (RT-2)', async () => {
    await start();
    await world.generate({}, await world.credentials(AGENT, { epoch: 2n }));
    const stale = await world.generate({}, await world.credentials(AGENT, { epoch: 1n }));
    expect(stale.error).toMatchObject({ reason: 'STALE_EPOCH' });
    const replay = await world.generate({}, await world.credentials(AGENT, { epoch: 3n }));
    expect(replay.finished?.replayed).toBe(true);
    const two = await world.generate(
      { callId: 'op-2' },
      await world.credentials(AGENT, { epoch: 2n }),
    );
    expect(two.error).toMatchObject({ reason: 'STALE_EPOCH' });
  });

  it('is rejected for an unknown price only when a cost cap applies (EM-4)', async () => {
    await start({
      models: `models:\n  hello: { base_url: "${reference('SIM_URL')}", api_key_env: SIM_KEY, model: "sim:hello" }`,
    });
    expect((await world.generate()).finished?.costNanoUsd).toBe(0n);
    await world.openTab({
      agent: { name: 'support', instance: 'capped' },
      budget: { maxCostNanoUsd: 1_000_000_000n },
    });
    const { error } = await world.generate({}, await world.credentials('capped'));
    expect(error).toMatchObject({ reason: 'PRICE_MISSING', kind: 'failed_precondition' });
  });
});
