import { ManualClock, UnavailableError } from '@writ/kernel';
import { createTelemetry } from '@writ/telemetry';
import { beforeEach, describe, expect, it } from 'vitest';
import { listRegistry } from './list-registry.ts';
import { ToolCache } from './tool-cache.ts';

const { log } = createTelemetry({ service: 'supervisor', logLevel: 'silent' });

interface Page {
  readonly tools: readonly string[];
  readonly version: string;
  readonly next?: string;
}

describe('the gateway’s definitions as the supervisor keeps them', () => {
  const clock = new ManualClock();
  let pages: readonly Page[];
  let isAway: boolean;
  let emits: boolean;
  let calls: { readonly knownVersion: string; readonly pageToken: string }[];
  let cache: ToolCache;

  const definition = (name: string) => ({
    name,
    inputSchemaJson: name === 'garbled' ? '{"type":' : '{"type":"object"}',
    definitionDigest: name === 'undigested' ? '' : `digest-of-${name}`,
    risk: 0.29,
  });

  const client = {
    async listTools({ knownVersion = '', pageToken = '' }) {
      calls.push({ knownVersion, pageToken });
      if (isAway) throw new UnavailableError('UNAVAILABLE', 'Away.');
      const page = pages.find((_, index) => pageToken === (index === 0 ? '' : `page-${index}`));
      const { tools = [], version = '', next = '' } = page ?? {};
      const unchanged = knownVersion === version;
      return {
        tools: unchanged ? [] : tools.map(definition),
        registryVersion: version,
        nextPageToken: unchanged ? '' : next,
        unchanged,
        emitsHookEvents: emits,
      };
    },
  } as unknown as Parameters<typeof listRegistry>[0];

  beforeEach(() => {
    pages = [{ tools: ['look'], version: 'v1' }];
    isAway = false;
    emits = true;
    calls = [];
    cache = new ToolCache((known) => listRegistry(client, known, log), clock);
  });

  const names = async (wanted?: string) => [...(await cache.current(wanted)).tools.keys()];

  it('are asked for once while they are fresh, by everybody together', async () => {
    await Promise.all([names(), names(), names()]);
    await names('look');
    expect(calls).toHaveLength(1);
    clock.advance(2_000);
    await names();
    expect(calls.slice(1)).toEqual([{ knownVersion: 'v1', pageToken: '' }]);
  });

  it('have their risk on the scale of policies', async () => {
    expect((await cache.current()).tools.get('look')?.risk).toBe(29);
  });

  it('are asked for again when a tool is not among them, but not each time', async () => {
    await names();
    pages = [{ tools: ['look', 'act'], version: 'v2' }];
    clock.advance(250);
    expect(await names('act')).toEqual(['look', 'act']);
    for (let times = 0; times < 10; times += 1) await names('invented');
    expect(calls).toHaveLength(2);
  });

  it('stay in use while the gateway is away, and are missing when it never answered (SYS-4)', async () => {
    isAway = true;
    await expect(names()).rejects.toMatchObject({
      reason: 'TOOL_LIST_UNAVAILABLE',
      kind: 'unavailable',
    });
    isAway = false;
    expect(await names()).toEqual(['look']);
    isAway = true;
    clock.advance(60_000);
    expect(await names()).toEqual(['look']);
    clock.advance(-120_000);
    expect(await names()).toEqual(['look']);
    expect(calls).toHaveLength(4);
  });

  it('come with whether the gateway tells of its calls itself, by its last answer (HK-1)', async () => {
    expect(cache.emitsHookEvents).toBe(false);
    await names();
    expect(cache.emitsHookEvents).toBe(true);
    emits = false;
    clock.advance(2_000);
    // The registry is the same; who serves it need not be.
    await names();
    expect(cache.emitsHookEvents).toBe(false);
    expect(calls).toHaveLength(2);
  });

  it('come from all pages of one version', async () => {
    pages = [
      { tools: ['a'], version: 'v1', next: 'page-1' },
      { tools: ['b'], version: 'v1' },
    ];
    expect(await names()).toEqual(['a', 'b']);
    pages = [
      { tools: ['a'], version: 'v2', next: 'page-1' },
      { tools: ['b'], version: 'v3' },
    ];
    clock.advance(2_000);
    // The registry never stood still, so what was known stays.
    expect(await names()).toEqual(['a', 'b']);
    expect((await cache.current()).version).toBe('v1');
  });

  it('leave out a tool whose definition nobody can use, and no other (SYS-4)', async () => {
    pages = [{ tools: ['garbled', 'undigested', 'look'], version: 'v1' }];
    expect(await names()).toEqual(['look']);
  });
});
