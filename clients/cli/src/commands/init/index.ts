import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type CommandGroup, EXIT } from '../../io.ts';

/** `writ init`: creates a runnable project (PE-3). */
export const initCommand: CommandGroup = (program, io, done) => {
  program
    .command('init')
    .argument(
      '<folder>',
      'a folder that does not exist or is empty; the folder name becomes the project name',
    )
    .description('Create a project: agents, tools, policy, models and a test.')
    .action(async (folder: string) => {
      const { writeProject } = await import('./write-project.ts');
      const files = writeProject(folder, cliVersion());
      for (const file of files) io.print(`created ${file}`);
      io.print('');
      io.print('Next:');
      io.print(`  cd ${folder}`);
      io.print('  npm install');
      io.print('  npx writ dev');
      done(EXIT.success);
    });
};

function cliVersion(): string {
  const file = fileURLToPath(new URL('../../../package.json', import.meta.url));
  return (JSON.parse(readFileSync(file, 'utf8')) as { readonly version: string }).version;
}
