import { isPostgresAvailable, postgresLocation } from '@writ/testing/postgres';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ClockKeeper } from '../src/app/agent/clock-keeper.ts';
import { activeAgents } from '../src/store/agent/agents.ts';
import type { SupervisorStore } from '../src/store/supervisor-store.ts';
import { LOOK_UP, RefundHarness } from './refund-harness.ts';
import { openSecondStore } from './supervisor-under-test.ts';

describe.skipIf(!isPostgresAvailable())('active time with several supervisors', () => {
  let harness: RefundHarness;
  let secondStore: SupervisorStore;

  beforeEach(async () => {
    harness = await RefundHarness.start({ config: { store: await postgresLocation() } });
    secondStore = await openSecondStore(harness.supervisor);
  });
  afterEach(async () => {
    await secondStore.close();
    await harness.close();
  });

  it('continues when a second supervisor starts, and excludes the time when no supervisor runs (EM-1, SYS-5)', async () => {
    await (await harness.agent()).propose('op-1', LOOK_UP);
    const running = async () => (await activeAgents(secondStore.db)).length;
    expect(await running()).toBe(1);
    const second = new ClockKeeper(secondStore);
    await second.start();
    expect(await running()).toBe(1);

    await harness.supervisor.service.stop();
    // The remaining supervisor keeps the clocks running from now on.
    await second.takeOver();
    expect(await running()).toBe(1);
    await secondStore.close();
    secondStore = await openSecondStore(harness.supervisor);
    await vi.waitFor(async () => {
      await new ClockKeeper(secondStore).start();
      expect(await running()).toBe(0);
    });
  });
});
