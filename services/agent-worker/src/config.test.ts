import { describe, expect, it } from 'vitest';
import { readAgentWorkerConfig } from './config.ts';

describe('the settings of a worker', () => {
  it('default to a loopback listener and a SQLite store (SYS-5)', () => {
    expect(readAgentWorkerConfig({})).toMatchObject({
      host: '127.0.0.1',
      port: 50_055,
      dataDir: '.writ',
      store: { dialect: 'sqlite', file: '.writ/agent-worker.db' },
      workerId: 'worker-1',
      tenants: [],
    });
  });

  it('are read from the environment (SYS-6)', () => {
    const config = readAgentWorkerConfig({
      WRIT_AGENT_WORKER_PORT: '0',
      WRIT_DATA: '/data',
      WRIT_WORKER_ID: 'worker-7',
      WRIT_WORKER_TENANTS: 'acme, globex',
      WRIT_WORKER_MAX_AGENTS: '3',
      WRIT_WORKER_LEASE_TTL: '20s',
    });
    expect(config).toMatchObject({
      port: 0,
      store: { file: '/data/agent-worker.db' },
      workerId: 'worker-7',
      tenants: ['acme', 'globex'],
      maxConcurrentAgents: 3,
      leaseTtlMs: 20_000,
    });
  });

  it('are rejected with the name of the invalid variable (SYS-3)', () => {
    expect(() => readAgentWorkerConfig({ WRIT_WORKER_LEASE_TTL: '1ms' })).toThrow(
      /WRIT_WORKER_LEASE_TTL/,
    );
    // The renewal interval is a third of the TTL, and Node limits the delay of a timer.
    expect(() => readAgentWorkerConfig({ WRIT_WORKER_LEASE_TTL: '75d' })).toThrow(
      /WRIT_WORKER_LEASE_TTL/,
    );
  });
});
