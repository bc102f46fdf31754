/**
 * `npm run upgrade -- --from REF`: starts a platform of the commit REF (default HEAD~1) and replaces its replicas with
 * replicas of this source tree, one at a time; with `--back`, in the other direction.
 */
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { previousBuild } from './previous-build.ts';
import { rollingUpgrade } from './rolling-upgrade.ts';

const { values } = parseArgs({
  options: {
    from: { type: 'string', default: 'HEAD~1' },
    waiting: { type: 'string', default: '10' },
    during: { type: 'string', default: '6' },
    back: { type: 'boolean', default: false },
  },
});
const build = previousBuild(values.from);
try {
  const here = resolve(import.meta.dirname, '../..');
  const [from, to] = values.back ? [here, build.folder] : [build.folder, here];
  const { runs, problems } = await rollingUpgrade({
    from,
    to,
    waiting: Number(values.waiting),
    during: Number(values.during),
    log: (line) => console.log(`  ${line}`),
  });
  const direction = values.back ? 'back to' : 'from';
  console.log(
    `${problems.length === 0 ? 'PASS' : 'FAIL'}: upgrade ${direction} ${build.commit}, ${runs} runs`,
  );
  if (problems.length > 0) {
    console.log(problems.join('\n'));
    process.exitCode = 1;
  }
} finally {
  build.remove();
}
