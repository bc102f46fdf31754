import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { runCommand } from '../run-command.ts';
import { type PublicPackage, ROOT, relativeImportsOf } from './public-packages.ts';

/** Output folder of the compiler; it has the same subfolders as the repository. */
export const BUILD = join(ROOT, 'dist/build');

/**
 * Compiles the modules of the public subpaths and commands of the packages, and all modules that they import directly
 * or indirectly, to JavaScript and declarations in {@link BUILD}.
 * @throws Error with the messages of the compiler
 */
export async function buildPackages(packages: Iterable<PublicPackage>): Promise<void> {
  rmSync(BUILD, { recursive: true, force: true });
  const files = [...packages].flatMap(entriesOf);
  // The project file is not named tsconfig.json, so that editors ignore it.
  const project = join(ROOT, 'dist/packages.tsconfig.json');
  writeFileSync(
    project,
    JSON.stringify({
      extends: '../tsconfig.json',
      compilerOptions: {
        noEmit: false,
        declaration: true,
        resolveJsonModule: true,
        // Node 22 has no `using` declarations.
        target: 'es2023',
        rootDir: ROOT,
        outDir: BUILD,
      },
      include: [],
      files,
    }),
  );
  const { code, output } = await runCommand('tsc', '-p', project);
  if (code !== 0) throw new Error(`The packages do not compile.\n${output}`);
}

/**
 * The files behind the subpaths and commands of a package, and every file that these import. All are listed, since the
 * compiler writes nothing for files that it first finds through node_modules.
 */
function entriesOf({ folder, exports, json }: PublicPackage): string[] {
  const entries = [...Object.values(exports), ...Object.values(json.bin ?? {})].flatMap((file) =>
    globSync(join(ROOT, folder, file.replace('*', '**/*'))),
  );
  const files = new Set(entries);
  // The iteration of a Set includes elements that are added during the iteration.
  for (const file of files) {
    for (const imported of relativeImportsOf(readFileSync(file, 'utf8'))) {
      if (imported.endsWith('.ts')) files.add(join(dirname(file), imported));
    }
  }
  return [...files];
}
