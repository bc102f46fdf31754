import { expect, it, onTestFinished } from 'vitest';
import { runCommand } from '../../clients/cli/test/command.ts';
import { callTool, startTeamPlatform } from '../agent-proxy/external-team.ts';

it('starts, lists and closes a run of an external agent with sub-agents from the command line (AP-1, AP-6, PE-2)', async () => {
  const test = await startTeamPlatform();
  onTestFinished(() => test.close());
  const writ = async (...args: string[]) => {
    const { exit, out, err } = await runCommand(test, args);
    expect({ args, exit, err }).toEqual({ args, exit: 0, err: [] });
    return out.join('\n');
  };
  const runId = await writ('run', 'refund-bot', 'Answer ticket 4711.', '--detach');
  const { token, mcpUrl } = JSON.parse(await writ('runs', 'token', runId, '-o', 'json'));
  const run = { runId, token, url: new URL(mcpUrl) };
  const helper = { 'x-writ-agent': 'helper-1' };
  const context = () => callTool(run, 'get_refund_context', { user_id: 42 }, helper);
  await expect.poll(context).toContain('io.writ/receipt');
  const [headings, root, child] = (await writ('runs', 'agents', runId)).split('\n');
  expect(headings).toMatch(/^AGENT +INSTANCE +KIND +PARENT +STATE +WAITS FOR +STEPS +STOP REASON$/);
  const instance = /^refund-bot +([\w-]+) +external /.exec(root ?? '')?.[1];
  expect(child).toMatch(new RegExp(`^helper-bot +\\S+ +external +${instance} `));
  expect(await writ('runs', 'list')).toMatch(new RegExp(`^${runId} +refund-bot +external `, 'm'));
  await writ('runs', 'close', runId);
  await expect
    .poll(() => writ('runs', 'get', runId))
    .toMatch(/^kind: +external\nstate: +completed\n[\s\S]*^stop reason: +closed$/m);
  const { exit, err } = await runCommand(test, ['runs', 'token', runId]);
  expect({ exit, err }).toEqual({ exit: 2, err: [`Run ${runId} has ended; start a new run.`] });
});
