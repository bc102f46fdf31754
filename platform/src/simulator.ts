/** The model simulator as a separate process, for platforms with a process per service. */
import { once } from 'node:events';
import { createModelSimulator } from '@writ/simulator';
import { readSimulatorConfig } from './config.ts';
import { loadExample } from './example.ts';
import { explain } from './terminal/explain.ts';

async function serve(): Promise<void> {
  const { host, port, exampleName } = readSimulatorConfig(process.env);
  const example = loadExample(exampleName);
  const simulator = await createModelSimulator({
    scripts: example.scripts,
    defaultScript: example.script,
    host,
    port,
  });
  const stopSignal = Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT')]);
  console.log(`simulator listens on ${host}:${simulator.port}`);
  await stopSignal;
  await simulator.close();
}

await serve().catch((error: unknown) => {
  console.error(explain(error));
  process.exitCode = 1;
});
