/**
 * Lists the tests of each requirement: writes dist/requirements.md from docs/reference/requirements.md and the test titles.
 * Fails when a title names an id that the page does not define; `--check` only checks.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';

const PAGE = 'docs/reference/requirements.md';
const OUTPUT = 'dist/requirements.md';
const ID = /\b(?:SUP|SB|EM|TG|SV|AG|RT|HK|SYS|AP|BD|PE|CO)-\d+\b/g;
const TITLE = /\b(?:it|test|describe)(?:\.each\([^)]*\))?\(\s*(['"`])((?:\\.|(?!\1).)*)\1/gs;

function testFiles(): string[] {
  const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '*.test.ts'], {
    encoding: 'utf8',
  });
  return listed.split('\n').filter(Boolean).sort();
}

/** Test titles by requirement id. A range such as `SV-1..4` is not expanded: a title names each id. */
function titlesById(): Map<string, string[]> {
  const byId = new Map<string, string[]>();
  for (const file of testFiles()) {
    for (const [, , title = ''] of readFileSync(file, 'utf8').matchAll(TITLE)) {
      for (const id of new Set(title.match(ID) ?? [])) {
        const line = `- ${file}: ${title.replace(/\s+/g, ' ').replace(/\\'/g, "'")}`;
        byId.set(id, [...(byId.get(id) ?? []), line]);
      }
    }
  }
  return byId;
}

const byId = titlesById();
const unknown = new Set(byId.keys());
const rendered = readFileSync(PAGE, 'utf8').replace(
  /^### (\S+)\n(.*)\n/gm,
  (_, id: string, line: string) => {
    unknown.delete(id);
    const tests = byId.get(id) ?? ['PARTIAL: no test names this requirement.'];
    return `### ${id}\n${line}\n\n${tests.join('\n')}\n`;
  },
);
if (unknown.size > 0) {
  console.error(`Test titles name ids that ${PAGE} does not define: ${[...unknown].join(', ')}.`);
  process.exitCode = 1;
} else if (!process.argv.includes('--check')) {
  mkdirSync('dist', { recursive: true });
  writeFileSync(OUTPUT, rendered);
}
