/**
 * `npm run pack`: builds every public package to JavaScript with types, stages it in dist/packages, and packs it to
 * dist/packages/*.tgz. Publish with `npm publish dist/packages/FILE.tgz`.
 */
import { mkdirSync, rmSync } from 'node:fs';
import { relative } from 'node:path';
import { buildPackages } from './packages/build.ts';
import { type PublicPackage, publishable, ROOT } from './packages/public-packages.ts';
import { STAGED, stageConsole, stagePackage } from './packages/stage.ts';
import { runCommand } from './run-command.ts';

const all = publishable();
const packages = neededBy([...all.values()].filter(({ isForUsers }) => isForUsers));
rmSync(STAGED, { recursive: true, force: true });
mkdirSync(STAGED, { recursive: true });
await buildPackages(packages.values());
const page = stageConsole();
if (page === undefined)
  console.log('The console is not built (npm run console); packed without it.');
const staged = [
  ...[...packages.values()].map((one) => stagePackage(one, packages)),
  ...(page === undefined ? [] : [page]),
];
const { code, output } = await runCommand(
  'npm',
  'pack',
  '--silent',
  '--pack-destination',
  STAGED,
  ...staged.map(({ folder }) => folder),
);
if (code !== 0) throw new Error(`npm pack failed.\n${output}`);
for (const { name } of staged) console.log(name);
console.log(`${staged.length} packages in ${relative(ROOT, STAGED)}`);

/** Returns the packages that users import, with all their dependencies among the public packages. */
function neededBy(users: readonly PublicPackage[]): ReadonlyMap<string, PublicPackage> {
  const needed = new Map<string, PublicPackage>();
  const add = (one: PublicPackage): void => {
    if (needed.has(one.json.name)) return;
    needed.set(one.json.name, one);
    for (const name of Object.keys(one.json.dependencies ?? {})) {
      const dependency = all.get(name);
      if (dependency !== undefined) add(dependency);
    }
  };
  for (const one of users) add(one);
  return needed;
}
