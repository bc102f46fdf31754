/** Entry point of the image: the first argument selects the program, the others are passed to it. */
import { hostname } from 'node:os';
import { chooseModels } from './choose-models.ts';

const MAINS: Readonly<Record<string, string>> = {
  supervisor: 'services/supervisor/src/main.ts',
  'spawn-budget': 'services/spawn-budget/src/main.ts',
  'execution-meter': 'services/execution-meter/src/main.ts',
  'tool-gateway': 'services/tool-gateway/src/main.ts',
  'agent-worker': 'services/agent-worker/src/main.ts',
  'agent-proxy': 'services/agent-proxy/src/main.ts',
  platform: 'platform/src/main.ts',
  simulator: 'platform/src/simulator.ts',
  cli: 'clients/cli/src/main.ts',
  health: 'deploy/docker/health.ts',
  prepare: 'deploy/docker/prepare.ts',
};

const [, , name = '', ...rest] = process.argv;
const main = MAINS[name];
if (main === undefined) {
  console.error(`usage: writ ${Object.keys(MAINS).join(' | ')}`);
  process.exitCode = 2;
} else {
  // The id of a worker must be unique. The host name of a container is unique: it is the short container id or the name
  // of the pod.
  process.env.WRIT_WORKER_ID ||= hostname().toLowerCase();
  chooseModels(process.env);
  const file = new URL(`../../${main}`, import.meta.url);
  process.argv.splice(1, process.argv.length, file.pathname, ...rest);
  await import(file.href);
}
