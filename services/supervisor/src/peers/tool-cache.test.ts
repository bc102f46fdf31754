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

describe('ToolCache', () => {
  const clock = new ManualClock();
  let pages: readonly Page[];
  let isUnreachable: boolean;
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
      if (isUnreachable) throw new UnavailableError('UNAVAILABLE', 'Unreachable.');
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
    isUnreachable = false;
    emits = true;
    calls = [];
    cache = new ToolCache((known) => listRegistry(client, known, log), clock);
  });

  const names = async (wanted?: string) => [...(await cache.current(wanted)).tools.keys()];

  it('lists the registry once for concurrent callers and while the listing is fresh', async () => {
    await Promise.all([names(), names(), names()]);
    await names('look');
    expect(calls).toHaveLength(1);
    clock.advance(2_000);
    await names();
    expect(calls.slice(1)).toEqual([{ knownVersion: 'v1', pageToken: '' }]);
  });

  it('requests the list again for a caller that joined an older request', async () => {
    const held = Promise.withResolvers<void>();
    const versions = ['old', 'new', 'newest'];
    const slow = new ToolCache(async () => {
      const version = versions.shift() ?? '';
      if (version === 'old') await held.promise;
      return { listing: { version, tools: new Map() }, emitsHookEvents: true };
    }, clock);
    const first = slow.current();
    // The tools change while the first request is in flight.
    clock.advance(2_000);
    const second = slow.current();
    held.resolve();
    await first;
    expect((await second).version).toBe('new');
    expect((await slow.current()).version).toBe('new');
  });

  it('converts risks to the scale of policies', async () => {
    expect((await cache.current()).tools.get('look')?.risk).toBe(29);
  });

  it('lists again for an unknown tool, at a limited rate', async () => {
    await names();
    pages = [{ tools: ['look', 'act'], version: 'v2' }];
    clock.advance(250);
    expect(await names('act')).toEqual(['look', 'act']);
    for (let times = 0; times < 10; times += 1) await names('invented');
    expect(calls).toHaveLength(2);
  });

  it('uses the cached listing while the gateway is unreachable, and fails if none is cached (SYS-4)', async () => {
    isUnreachable = true;
    await expect(names()).rejects.toMatchObject({
      reason: 'TOOL_LIST_UNAVAILABLE',
      kind: 'unavailable',
    });
    isUnreachable = false;
    expect(await names()).toEqual(['look']);
    isUnreachable = true;
    clock.advance(60_000);
    expect(await names()).toEqual(['look']);
    expect(calls).toHaveLength(3);
  });

  it('waits for an unresponsive gateway once per interval, even with concurrent callers (SYS-4)', async () => {
    let requests = 0;
    const slow = new ToolCache(async () => {
      requests += 1;
      if (requests === 1) {
        return { listing: { version: 'v1', tools: new Map() }, emitsHookEvents: true };
      }
      await Promise.resolve();
      clock.advance(2_000);
      throw new UnavailableError('UNAVAILABLE', 'Timed out.');
    }, clock);
    await slow.current();
    clock.advance(2_000);
    await Promise.all([slow.current(), slow.current()]);
    expect((await slow.current()).version).toBe('v1');
    expect(requests).toBe(2);
    clock.advance(2_000);
    await slow.current();
    expect(requests).toBe(3);
  });

  it('measures the age of a listing by a monotonic clock (BD-3)', async () => {
    await names();
    for (const stepMs of [3_600_000, -7_200_000]) {
      clock.step(stepMs);
      await names();
    }
    expect(calls).toHaveLength(1);
    clock.advance(2_000);
    clock.step(-1_000);
    await names();
    expect(calls).toHaveLength(2);
  });

  it('returns whether the gateway publishes tool events, from its last response (HK-1)', async () => {
    expect(cache.emitsHookEvents).toBe(false);
    await names();
    expect(cache.emitsHookEvents).toBe(true);
    emits = false;
    clock.advance(2_000);
    // The registry has the same version, but another replica of the gateway may have responded.
    await names();
    expect(cache.emitsHookEvents).toBe(false);
    expect(calls).toHaveLength(2);
  });

  it('reads all pages of one version', async () => {
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
    // The version changed while the pages were read, so the cache keeps the previous tools.
    expect(await names()).toEqual(['a', 'b']);
    expect((await cache.current()).version).toBe('v1');
  });

  it('omits only tools with an unusable definition (SYS-4)', async () => {
    pages = [{ tools: ['garbled', 'undigested', 'look'], version: 'v1' }];
    expect(await names()).toEqual(['look']);
  });
});
