/**
 * Lists the tests of each requirement: writes dist/requirements.md from docs/reference/requirements.md and the titles
 * of the tests that CI runs. Fails when a title names an id that the page does not define, or when a requirement has
 * neither a test nor a line that says what is missing; `--check` only checks.
 */
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import vitestConfig from '../vitest.config.ts';

const PAGE = 'docs/reference/requirements.md';
const OUTPUT = 'dist/requirements.md';
const ID = /\b(?:SUP|SB|EM|TG|SV|AG|RT|HK|SYS|AP|BD|PE|CO)-\d+\b/g;
/** Matches a test title after `it(`, `test(` or `describe(`, or after the arguments of `it.each(…)`. */
const TITLE = /(?:\b(?:it|test|describe)\(|\)\()\s*(['"`])((?:\\.|(?!\1).)*)\1/gs;

/** Test titles by requirement id, each as a line of the list. */
export type Titles = ReadonlyMap<string, readonly string[]>;

/** Returns the vitest projects that the scripts in .ci/run select. */
export function projectsOfCi(ci: string, scripts: Readonly<Record<string, string>>): string[] {
  const run = [...ci.matchAll(/^npm (?:run -s )?([a-z:]+)/gm)].map(
    ([, name = '']) => scripts[name],
  );
  return run.flatMap((script = '') =>
    [...script.matchAll(/--project (\w+)/g)].map(([, project = '']) => project),
  );
}

/** Returns the test files of the vitest projects that CI runs. */
export function testFilesOfCi(): string[] {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as {
    readonly scripts: Readonly<Record<string, string>>;
  };
  const names = projectsOfCi(readFileSync('.ci/run', 'utf8'), scripts);
  const files = (vitestConfig.test?.projects ?? []).flatMap((project) => {
    const { test } = project as {
      readonly test: { name: string; include: string[]; exclude?: string[] };
    };
    if (!names.includes(test.name)) return [];
    return globSync(test.include, { exclude: ['**/node_modules/**', ...(test.exclude ?? [])] });
  });
  return [...new Set(files)].sort();
}

/** Returns the test titles by requirement id. A range such as `SV-1..4` is not expanded: a title names each id. */
export function titlesOf(
  files: readonly { readonly file: string; readonly text: string }[],
): Titles {
  const byId = new Map<string, readonly string[]>();
  for (const { file, text } of files) {
    for (const [, , title = ''] of text.matchAll(TITLE)) {
      for (const id of new Set(title.match(ID) ?? [])) {
        const line = `- ${file}: ${title.replace(/\s+/g, ' ').replace(/\\'/g, "'")}`;
        byId.set(id, [...(byId.get(id) ?? []), line]);
      }
    }
  }
  return byId;
}

/** The list, the ids without a definition, and the ids with neither a test nor a gap. */
export interface RequirementList {
  readonly text: string;
  readonly unknown: readonly string[];
  readonly unexplained: readonly string[];
}

/**
 * Renders the page with the tests of each requirement. A line `Missing: …` in the page makes a requirement PARTIAL or
 * MISSING.
 */
export function renderRequirements(page: string, titles: Titles): RequirementList {
  const unknown = new Set(titles.keys());
  const unexplained: string[] = [];
  const text = page.replace(
    /^### (\S+)\n(.*)\n(?:\nMissing: (.*)\n)?/gm,
    (_, id: string, requirement: string, gap: string | undefined) => {
      unknown.delete(id);
      const tests = titles.get(id) ?? [];
      if (tests.length === 0 && gap === undefined) unexplained.push(id);
      const state = tests.length === 0 ? 'MISSING' : 'PARTIAL';
      const missing = gap ?? 'no test names this requirement.';
      const note = tests.length === 0 || gap !== undefined ? [`${state}: ${missing}\n`] : [];
      return `### ${id}\n${requirement}\n\n${[...note, ...tests].join('\n')}\n`;
    },
  );
  return { text, unknown: [...unknown], unexplained };
}

if (import.meta.main) {
  const files = testFilesOfCi().map((file) => ({ file, text: readFileSync(file, 'utf8') }));
  const list = renderRequirements(readFileSync(PAGE, 'utf8'), titlesOf(files));
  if (list.unknown.length > 0) {
    console.error(`Test titles name ids that ${PAGE} does not define: ${list.unknown.join(', ')}.`);
    process.exitCode = 1;
  }
  if (list.unexplained.length > 0) {
    const ids = list.unexplained.join(', ');
    console.error(`Without a test, ${PAGE} must say what is missing ("Missing: …"): ${ids}.`);
    process.exitCode = 1;
  }
  if (process.exitCode !== 1 && !process.argv.includes('--check')) {
    mkdirSync('dist', { recursive: true });
    writeFileSync(OUTPUT, list.text);
  }
}
