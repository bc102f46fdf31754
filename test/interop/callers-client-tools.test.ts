import { newId } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { startExternalRun } from '../agent-proxy/external-run.ts';
import { callerPrograms, callProgram } from './caller-program.ts';
import { askChat, modelOf, reviewedPlatform, shell } from './reviewed-calls.ts';

describe.each(callerPrograms())('the client in $language', (program) => {
  it.skipIf(program.command.length === 0)(
    'lists, edits and watches a call that the program of an external agent executes (SYS-2, SV-5, AP-5)',
    async () => {
      const test = await reviewedPlatform(await modelOf({ calls: [shell('make')] }));
      const run = await startExternalRun(test);
      const { edgeUrl, apiKey } = test.platform;
      const env = { WRIT_ADDRESS: new URL(edgeUrl).host, WRIT_API_KEY: apiKey };
      const call = (...args: readonly string[]) => callProgram(program, env, ...args);
      const asked = askChat(run);
      await expect
        .poll(async () => (await call('approvals', run.runId)).lines[0], { interval: 200 })
        .toMatch(/^apr_\S+ shell \{"command":"make"\}$/);
      const [approval = ''] = (await call('approvals', run.runId)).lines[0]?.split(' ') ?? [];
      const edit = [`${program.dash}edit`, '{"command": "make all"}'];
      expect(await call('approve', ...edit, approval)).toEqual({
        code: 0,
        lines: ['APPROVAL_STATE_APPROVED {"command":"make all"}'],
        stderr: '',
      });
      expect((await asked).calls).toMatchObject([{ command: 'make all' }]);
      await test.client.runs.cancelRun({
        requestId: newId('req'),
        runId: run.runId,
        reason: 'over',
      });
      const { lines } = await call('watch', run.runId);
      expect(lines).toContainEqual(expect.stringMatching(/^\d+ VERDICT_ESCALATE shell shell$/));
    },
  );
});
