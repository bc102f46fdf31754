import { describe, expect, it } from 'vitest';
import { readProcessSettings } from './config.ts';

describe('the settings of a service in a process of its own', () => {
  it('find every other service on loopback unless they are told otherwise (SYS-5)', () => {
    const { addressOf, telemetry } = readProcessSettings({
      WRIT_TOOL_GATEWAY_ADDRESS: 'gateway.example:443',
    });
    expect(addressOf('supervisor')).toBe('127.0.0.1:50051');
    expect(addressOf('tool-gateway')).toBe('gateway.example:443');
    expect(telemetry).toEqual({ logLevel: 'info' });
  });

  it('share events with other processes only when a NATS server is named (HK-2, SYS-5)', () => {
    expect(readProcessSettings({}).nats).toBeUndefined();
    const { nats } = readProcessSettings({
      WRIT_NATS_URL: 'nats://a:4222,nats://b:4222',
      WRIT_NATS_PASSWORD: 'secret',
    });
    expect(nats).toMatchObject({
      servers: ['nats://a:4222', 'nats://b:4222'],
      user: undefined,
      password: 'secret',
    });
  });

  it('name what is malformed (SYS-3)', () => {
    expect(() => readProcessSettings({ WRIT_AGENT_WORKER_ADDRESS: 'nowhere' })).toThrow(
      /WRIT_AGENT_WORKER_ADDRESS/,
    );
  });
});
