import { ManualClock, PeerClocks } from '@writ/kernel';
import { createTelemetry } from '@writ/telemetry';
import { expect, it } from 'vitest';
import { ALONE_MS, ClockMonitor } from './clock-monitor.ts';

/** A monitor with the default leeway, and the lines that it logs. */
function monitored() {
  const clock = new ManualClock();
  const peerClocks = new PeerClocks(clock);
  const lines: { readonly msg: string; readonly peer?: string }[] = [];
  const telemetry = createTelemetry({
    service: 'execution-meter',
    logLevel: 'info',
    logStream: { write: (line: string) => void lines.push(JSON.parse(line)) },
  });
  const changes: boolean[] = [];
  const monitor: ClockMonitor = new ClockMonitor({
    peerClocks,
    clock,
    leewayMs: 60_000,
    telemetry,
    onChange: () => void changes.push(monitor.isSkewed),
  });
  const see = (...peers: string[]) => {
    for (const peer of peers) peerClocks.observe(peer, clock.now().getTime());
  };
  return { clock, peerClocks, monitor, changes, lines, see };
}

it('reports a clock as skewed while it differs from the majority by more than 1.5 leeways (BD-3)', () => {
  const { clock, monitor, changes, see } = monitored();
  see('supervisor', 'agent-worker');
  clock.step(90_000);
  monitor.check();
  expect(monitor.isSkewed).toBe(false);
  clock.step(1);
  monitor.check();
  monitor.check();
  expect(monitor.isSkewed).toBe(true);
  clock.step(-90_001);
  monitor.check();
  expect(monitor.isSkewed).toBe(false);
  expect(changes).toEqual([true, false]);
});

it('detects a clock step at once, not at the next check (BD-3)', () => {
  const { clock, monitor, see } = monitored();
  see('supervisor', 'agent-worker');
  expect(monitor.isSkewed).toBe(false);
  clock.step(3_000_000);
  expect(monitor.isSkewed).toBe(true);
  expect(monitor.isConfirmed).toBe(false);
});

it('confirms the clock once it has been compared with two peers, or after a timeout without two peers (BD-3)', () => {
  const compared = monitored();
  compared.see('supervisor');
  expect(compared.monitor.isConfirmed).toBe(false);
  compared.see('agent-worker');
  expect(compared.monitor.isConfirmed).toBe(true);
  const alone = monitored();
  alone.clock.advance(ALONE_MS - 1);
  expect(alone.monitor.isConfirmed).toBe(false);
  alone.clock.advance(1);
  expect(alone.monitor.isConfirmed).toBe(true);
});

it('logs a skewed clock once a minute (BD-3)', () => {
  const { clock, monitor, lines, see } = monitored();
  see('supervisor', 'agent-worker');
  clock.step(-3_600_000);
  for (let second = 0; second < 119; second += 1) {
    monitor.check();
    clock.advance(1_000);
  }
  expect(lines.map(({ msg }) => msg)).toEqual(
    Array.from({ length: 2 }, () => 'clock skew above threshold, health reports NOT_SERVING'),
  );
});

it('keeps serving when the clock of only one peer differs, and logs the peer (BD-3)', () => {
  const { peerClocks, clock, monitor, changes, lines, see } = monitored();
  peerClocks.observe('agent-worker', clock.now().getTime() + 3_600_000);
  monitor.check();
  expect(lines).toMatchObject([
    { msg: 'clock skew of a peer above threshold', peer: 'agent-worker' },
  ]);
  see('supervisor');
  monitor.check();
  expect({ changes, count: lines.length }).toEqual({ changes: [], count: 1 });
});
