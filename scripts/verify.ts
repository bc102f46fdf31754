import { BASELINE } from './baseline.ts';
import { checkDocsSite } from './checks/docs-site.ts';
import { checkGeneratedCode } from './checks/generated-code.ts';
import { checkImportRules } from './checks/import-rules.ts';
import { checkWords } from './checks/words.ts';
import { type CommandResult, runCommand } from './run-command.ts';

type Check = () => Promise<CommandResult>;

const CHECKS: Readonly<Record<string, Check>> = {
  format: inTurn(
    () => runCommand('biome', 'format', '.'),
    () => runCommand('buf', 'format', '--diff', '--exit-code', 'proto'),
  ),
  lint: () => runCommand('biome', 'lint', '--error-on-warnings', '.'),
  types: inTurn(
    () => runCommand('tsc', '--noEmit'),
    () => runCommand('tsc', '--noEmit', '-p', 'clients/console'),
  ),
  contracts: inTurn(
    () => runCommand('buf', 'lint'),
    () => runCommand('buf', 'breaking', 'proto', '--against', BASELINE),
  ),
  'import rules': checkImportRules,
  'generated code is current': checkGeneratedCode,
  'generated pages are current': () => runCommand('node', 'scripts/pages.ts', '--check'),
  'documentation site': checkDocsSite,
  'requirement ids': () => runCommand('node', 'scripts/requirements.ts', '--check'),
  words: checkWords,
  'unused code': () => runCommand('knip', '--no-progress'),
  tests: () => runCommand('vitest', 'run'),
};

const withoutTests = process.argv.includes('--no-tests');
const failures: string[] = [];
for (const [name, check] of Object.entries(CHECKS)) {
  if (name === 'tests' && withoutTests) continue;
  const start = performance.now();
  const { code, output } = await check().catch(
    (error: unknown): CommandResult => ({ code: 1, output: String(error) }),
  );
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  console.log(`${code === 0 ? 'ok  ' : 'FAIL'} ${seconds.padStart(5)} s  ${name}`);
  if (code !== 0) failures.push(name);
  if (code !== 0) console.log(output.replace(/^/gm, '    '));
}
console.log(failures.length === 0 ? 'verified' : `failed: ${failures.join(', ')}`);
process.exitCode = failures.length === 0 ? 0 : 1;

function inTurn(...checks: readonly Check[]): Check {
  return async () => {
    const results: CommandResult[] = [];
    for (const check of checks) results.push(await check());
    const failed = results.filter(({ code }) => code !== 0);
    return { code: failed.length > 0 ? 1 : 0, output: failed.map((r) => r.output).join('\n') };
  };
}
