/**
 * `npm run demo`: runs an example once, on free ports, and exits. The exit status is 0 if every run of the example ends
 * with the status ok, 1 if a run ends with another status, and 2 after an error.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRunPrinter, resultJson } from '@writ/client/display';
import { type Run, RunStatus } from '@writ/contracts/writ/run/v1/run_pb';
import { dataDirOf } from './config.ts';
import { loadExample } from './example.ts';
import { openSession } from './session.ts';
import { chooseHuman } from './terminal/choose-human.ts';
import { explain } from './terminal/explain.ts';
import { readOptions } from './terminal/options.ts';
import { simulationNotice } from './terminal/simulation-notice.ts';

async function demo(): Promise<number> {
  const options = readOptions(process.argv.slice(2), {
    command: 'npm run demo',
    about: 'Runs an example once, on free ports; exit status 0 only for status ok.',
    options: ['json', 'example', 'script', 'human'],
  });
  if (typeof options === 'string') {
    console.log(options);
    return 0;
  }
  const example = loadExample(options.example);
  const human = chooseHuman(options.human);
  const kept = dataDirOf(process.env);
  let dataDir = kept;
  try {
    dataDir ??= mkdtempSync(join(tmpdir(), 'writ-demo-'));
    const session = await openSession(process.env, {
      example,
      script: options.script,
      dataDir,
      freePorts: true,
    });
    try {
      const printer = createRunPrinter((line) => {
        if (!options.json) console.log(line);
      });
      const others: Run[] = [];
      const run = await session.runJob(human, {
        onStart: printer.start,
        onOther: (other) => {
          others.push(other);
          printer.other(other);
        },
        onEvent: printer.event,
        onQuestion: simulationNotice(human, console.error),
        onBefore: printer.before,
        onSignal: printer.signal,
        onProposal: printer.proposal,
        onUnanswered: (approval) => printer.unanswered(approval),
        onRefusedAnswer: (sentence) => console.error(`    ${sentence}`),
      });
      printer.end(run);
      const beside = others.length === 0 ? {} : { beside: others.map(resultJson) };
      if (options.json) console.log(JSON.stringify({ ...resultJson(run), ...beside }, null, 2));
      const isOk = [run, ...others].every(({ result }) => result?.status === RunStatus.OK);
      return isOk ? 0 : 1;
    } finally {
      await session.close();
    }
  } finally {
    human.close?.();
    if (kept === undefined && dataDir !== undefined) {
      rmSync(dataDir, { recursive: true, force: true });
    }
  }
}

process.exitCode = await demo().catch((error: unknown) => {
  console.error(explain(error));
  return 2;
});
