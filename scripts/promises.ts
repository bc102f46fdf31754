/**
 * Keeps the lists of tests in docs/promises.md: each requirement id with the titles that name it.
 * `--check` writes nothing and fails when the page is out of date or a title names an unknown id.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

const PAGE = 'docs/promises.md';
const ID = /\b(?:SUP|SB|EM|TG|SV|AG|RT|HK|SYS)-\d+\b/g;
const TITLE = /\b(?:it|test|describe)(?:\.each\([^)]*\))?\(\s*(['"`])((?:\\.|(?!\1).)*)\1/gs;

function testFiles(): string[] {
  const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '*.test.ts'], {
    encoding: 'utf8',
  });
  return listed.split('\n').filter(Boolean).sort();
}

/** Titles that name ids, by id; a range such as `SV-1..4` is not understood on purpose: each id is named. */
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

function render(page: string, byId: Map<string, string[]>): string {
  const unknown = new Set(byId.keys());
  const rendered = page.replace(
    /^### (\S+)\n(.*)\n(?:\n(?:- .*|Nothing proves it yet\.)(?:\n- .*)*\n)?/gm,
    (_, id: string, line: string) => {
      unknown.delete(id);
      const tests = byId.get(id) ?? ['Nothing proves it yet.'];
      return `### ${id}\n${line}\n\n${tests.join('\n')}\n`;
    },
  );
  if (unknown.size > 0) {
    throw new Error(`Test titles name ids that ${PAGE} does not know: ${[...unknown].join(', ')}.`);
  }
  return rendered;
}

const page = readFileSync(PAGE, 'utf8');
const rendered = render(page, titlesById());
if (!process.argv.includes('--check')) writeFileSync(PAGE, rendered);
else if (rendered !== page) {
  console.error(`${PAGE} is out of date; run: npm run promises`);
  process.exit(1);
}
