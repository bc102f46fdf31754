import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ControlService } from '@writ/contracts/writ/control/v1/control_service_pb';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SupervisorUnderTest } from './supervisor-under-test.ts';
import { SECRET, WebhookReceiver } from './webhook-receiver.ts';

describe('a notification of a supervisor that is killed', () => {
  let receiver: WebhookReceiver;
  let supervisor: SupervisorUnderTest;
  const children: ChildProcess[] = [];
  beforeEach(async () => {
    receiver = await WebhookReceiver.start();
    supervisor = await SupervisorUnderTest.start();
    await supervisor.stop();
  });
  afterEach(async () => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
    await supervisor.close();
    await receiver.close();
  });

  const spawned = async (killBefore: string) => {
    const file = join(supervisor.config.dataDir, 'notifications.yaml');
    await writeFile(file, receiver.file());
    const process = await supervisor.spawnProcess({
      execArgv: ['--import', join(import.meta.dirname, 'kill-at-commit.ts')],
      env: {
        WRIT_NOTIFICATIONS_FILE: file,
        HOOK_SECRET: SECRET,
        WRIT_TEST_KILL_BEFORE: killBefore,
        WRIT_TEST_KILL_AFTER: 'no step',
      },
    });
    children.push(process.child);
    return process;
  };

  it.each([
    ['before the attempt', 'update "notifications" set "attempts"', 1],
    ['after the attempt, before its result was recorded', 'update "notifications" set "state"', 2],
  ])(
    'is sent after a restart when the process was killed %s (PE-2, HK-2)',
    async (_, statement, requests) => {
      const first = await spawned(statement);
      const exited = once(first.child, 'exit');
      const scope = { kind: { case: 'tenant', value: 'acme' } } as const;
      const control = supervisor.as('anna', ControlService, first.edgeAddress);
      // The process may die before it answers.
      await control.halt({ requestId: 'h-1', scope, reason: 'Stop.' }).catch(() => undefined);
      await exited;
      expect(receiver.received).toHaveLength(requests - 1);
      await spawned('');
      const received = await receiver.requests(requests);
      expect(new Set(received.map(({ id }) => id)).size).toBe(1);
      expect(received.every(({ isSigned }) => isSigned)).toBe(true);
    },
  );
});
