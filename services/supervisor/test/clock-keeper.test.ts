import { isPostgresAvailable, postgresLocation } from '@writ/testing/postgres';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ClockKeeper } from '../src/app/agent/clock-keeper.ts';
import { activeAgents } from '../src/store/agent/agents.ts';
import type { SupervisorStore } from '../src/store/supervisor-store.ts';
import { LOOK_UP, RefundDesk } from './refund-desk.ts';
import { openBeside } from './supervisor-under-test.ts';

describe.skipIf(!isPostgresAvailable())('active time under several supervisors', () => {
  let desk: RefundDesk;
  let beside: SupervisorStore;

  beforeEach(async () => {
    desk = await RefundDesk.start({ config: { store: await postgresLocation() } });
    beside = await openBeside(desk.supervisor);
  });
  afterEach(async () => {
    await beside.close();
    await desk.close();
  });

  it('goes on when another one starts, and is cut when none was there (EM-1, SYS-5)', async () => {
    await (await desk.agent()).propose('op-1', LOOK_UP);
    const running = async () => (await activeAgents(beside.db)).length;
    expect(await running()).toBe(1);
    const second = new ClockKeeper(beside);
    await second.start();
    expect(await running()).toBe(1);

    await desk.supervisor.service.stop();
    // Whoever is left keeps the clocks from then on, as if it had from the start.
    await second.stayOn();
    expect(await running()).toBe(1);
    await beside.close();
    beside = await openBeside(desk.supervisor);
    await vi.waitFor(async () => {
      await new ClockKeeper(beside).start();
      expect(await running()).toBe(0);
    });
  });
});
