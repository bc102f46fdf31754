/**
 * Finds words and phrases that the documentation of gRPC, Kubernetes, PostgreSQL or NATS would not use, in the prose,
 * the identifiers and the names of all files. `npm run words` lists every finding, `npm run words -- libs/bus` only the
 * findings in a folder.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { CommandResult } from '../run-command.ts';

/** The exceptions, one a line: `path prefix | pattern | reason`. */
const ALLOWED_FILE = 'scripts/checks/words-allowed.txt';

/**
 * The banned words, as patterns over lower-case words, and what to write instead. A space in a pattern also matches a
 * line break; `callOff`, `call_off` and `call-off` are read as `call off`.
 */
const RULES: readonly (readonly [banned: string, instead: string])[] = [
  ['under way|underway', 'in flight, in progress'],
  ['(?<!in |pre )flights?|(?<!of )courses?', 'in flight, in-flight call, work in progress'],
  ['call(s|ed|ing)? off', 'cancel, abort'],
  ['let(s|ting)? go', 'release'],
  ['(take|takes|taken|taking|took) up', 'claim, acquire, resume'],
  ['(take|takes|taken|taking|took) back', 'readmit, revoke, undo'],
  ['(go|goes|going|went) round', 'round robin, balance across replicas'],
  ['(go|goes|going|went) on', 'continue, resume'],
  ['(come|comes|coming|came|call|make|made) again', 'retry, repeat, reload'],
  ['elsewhere', 'owned by another replica, in another file'],
  ['whoever|nobody|somebody|anybody|everybody', 'client, caller, replica, worker, operator'],
  ['who asks|who calls', 'client, caller'],
  ['doors?|doorways?|entrances?', 'listener, port, endpoint, server'],
  ['(?<!refund )desks?|turnstiles?|lanes?', 'registry, worker pool, queue, semaphore'],
  ['next in line|waiting line|free places?', 'queue, semaphore, capacity, free session'],
  ['rooms?', 'folder, package, capacity'],
  ['news(?! feed)', 'event, notification'],
  ['beats?', 'flush interval'],
  ['lingers?|hurry|hurries|hurried', 'batch window, flush'],
  ['forgettable', 'relaxed durability'],
  ['remembered|remembers', 'cached, recorded, kept'],
  ['anew|afresh', 'again, reload'],
  ['mend|mends|mended|mending', 'fix, repair, recover'],
  ['hears?|heard', 'receive, accept'],
  ['told|(tell|tells|telling) of', 'publish, notify, log, report'],
  ['said', 'reported, declared; for identifiers: message'],
  ['stands?(?! for)|stood|standing', 'is, holds, is written; stand still: paused'],
  ['attend(s|ed|ing)? to|unattended', 'subscribe'],
  ['(is|are|was|were) no valid', 'is not a valid'],
  ['of no use', 'invalid'],
  ['(?<!there )(is|are) none', 'is invalid, is not a …; there is none'],
  ['must be (there|said)', 'is required'],
  ['over its time|lapse|lapses|lapsed', 'expired'],
  ['as many as may be', 'limit reached'],
  ['(?<!upper |lower )bounds', 'limits, quota, cap, threshold; upper bound'],
  ['proofs?', 'integration test, crash test; receipt, signature'],
  ['stages?|staged', 'setup, environment; level, step'],
  ['plays?|played|playing', 'run, answer; scenario'],
  ['(the|a) shows?|create run show', 'run, scenario, output'],
  ['not taken', 'rejected, not delivered'],
  ['gone|(go|goes|went|is|are) away', 'dead, unreachable, deleted, disconnected'],
  ['left out', 'ejected, omitted'],
  ['that are well|unwell|how they are', 'healthy, health check'],
  ['looks? at|looked at|looking at', 'load, read, check'],
  ['hands', 'for persons and clocks only'],
  ['hand(ed|s|ing)? on', 'pass, release'],
  ['acting', 'under review, in effect'],
  ['resting', 'suspended, parked, idle'],
  ['unfit', 'invalid, mismatched'],
  ['strangers?', 'unknown client'],
  ['patience|rungs?|legs?', 'longest wait; policy, level; attempt, retry'],
  ['(learn|learns|learned) (of|that|from)', 'receive, detect, read'],
  ['(?<!nothing |anything )but for', 'except for'],
  ['whence|whereof|thereof', 'from which, of which'],
];

/** The banned identifiers, as case-sensitive patterns, and what to write instead. */
const NAMES: readonly (readonly [banned: string, instead: string])[] = [
  ['make[A-Z]\\w*', 'createX, buildX, allocateX'],
];

/** One banned word or phrase in a file. */
export interface Finding {
  readonly file: string;
  /** Line number, from 1; 0 if the finding is in the file name. */
  readonly line: number;
  readonly found: string;
  readonly instead: string;
}

/** An exception of the allow-list. */
export interface Allowed {
  /** The line of the allow-list, unchanged. */
  readonly line: string;
  readonly prefix: string;
  readonly pattern: RegExp;
}

const COMPILED = RULES.map(([banned, instead]) => ({
  pattern: new RegExp(`(?<![a-z])(?:${banned.replaceAll(' ', '\\s+')})(?![a-z])`, 'g'),
  instead,
}));

const COMPILED_NAMES = NAMES.map(([banned, instead]) => ({
  pattern: new RegExp(`(?<![A-Za-z])(?:${banned})`, 'g'),
  instead,
}));

/** The banned words in the name and the text of one file, in the order of the lines. */
export function findWords(file: string, text: string): readonly Finding[] {
  const inName = matches(COMPILED, asWords(file)).map(({ found, instead }) => ({
    file,
    line: 0,
    found,
    instead,
  }));
  const words = asWords(text.replace(/\n[ \t]*(?:\*|\/\/|#)?[ \t]*/g, '\n'));
  const found = [
    ...matches(COMPILED, words).map((match) => ({ ...match, before: words.slice(0, match.index) })),
    ...matches(COMPILED_NAMES, text).map((match) => ({
      ...match,
      before: text.slice(0, match.index),
    })),
  ];
  const inText = found.map(({ found: word, before, instead }) => ({
    file,
    line: before.split('\n').length,
    found: word,
    instead,
  }));
  return [...inName, ...inText.sort((a, b) => a.line - b.line)];
}

function matches(rules: typeof COMPILED, text: string) {
  return rules.flatMap(({ pattern, instead }) =>
    [...text.matchAll(pattern)].map(({ 0: found, index }) => ({
      found: found.replace(/\s+/g, ' '),
      index,
      instead,
    })),
  );
}

/** Returns the text with identifiers split into words: `takeUp`, `TAKE_UP` and `take-up` become `take up`. */
function asWords(text: string): string {
  return text
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .replace(/[_-]/g, ' ')
    .toLowerCase();
}

/**
 * The exceptions that `text` lists.
 * @throws Error for a line without a path, a pattern or a reason
 */
export function readAllowed(text: string): readonly Allowed[] {
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [prefix = '', pattern = '', reason = ''] = line.split('|').map((part) => part.trim());
      if (prefix === '' || pattern === '' || reason === '') {
        throw new Error(`${ALLOWED_FILE}: "${line}" must be: path prefix | pattern | reason`);
      }
      return {
        line,
        prefix: prefix === '*' ? '' : prefix,
        pattern: new RegExp(`^(?:${pattern})$`),
      };
    });
}

/** Returns the findings without a matching exception, and the exceptions without a matching finding. */
export function applyAllowed(
  findings: readonly Finding[],
  allowed: readonly Allowed[],
): { readonly rest: readonly Finding[]; readonly unused: readonly Allowed[] } {
  const allows = ({ prefix, pattern }: Allowed, { file, found }: Finding) =>
    file.startsWith(prefix) && pattern.test(found);
  return {
    rest: findings.filter((finding) => !allowed.some((entry) => allows(entry, finding))),
    unused: allowed.filter((entry) => !findings.some((finding) => allows(entry, finding))),
  };
}

function allFindings(): readonly Finding[] {
  const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], {
    encoding: 'utf8',
  });
  const files = listed.split('\n').filter((file) => isChecked(file));
  const findings = files.flatMap((file) => findWords(file, readFileSync(file, 'utf8')));
  const { rest, unused } = applyAllowed(findings, readAllowed(readFileSync(ALLOWED_FILE, 'utf8')));
  const stale = unused.map(({ line }) => ({
    file: ALLOWED_FILE,
    line: 0,
    found: line,
    instead: 'nothing; the exception allows no finding, delete it',
  }));
  return [...rest, ...stale];
}

const CHECKED =
  /(\.(tsx?|mjs|md|proto|ya?ml|py|go|sh|sql|conf|tpl|txt|css|html|json|service|target|env|toml|svg)|\/run|Dockerfile)$/;
const EXCLUDED = /^(vendor|libs\/contracts\/gen)\/|^scripts\/checks\/words|^package-lock\.json$/;

/** Whether the words of a file are checked: source, documentation and configuration that the repository maintains. */
export function isChecked(file: string): boolean {
  return CHECKED.test(file) && !EXCLUDED.test(file);
}

/**
 * Counts the findings by folder.
 *
 * @returns code 1 when there is a finding
 */
export async function checkWords(): Promise<CommandResult> {
  const findings = allFindings();
  const counts = new Map<string, number>();
  for (const { file } of findings) {
    const folder = file.split('/').slice(0, 2).join('/');
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  const rows = [...counts].sort(([, a], [, b]) => b - a);
  const lines = rows.map(([folder, count]) => `${String(count).padStart(5)}  ${folder}`);
  return {
    code: findings.length > 0 ? 1 : 0,
    output: [`${findings.length} findings; npm run words lists them`, ...lines].join('\n'),
  };
}

if (import.meta.main) {
  const prefixes = process.argv.slice(2);
  const findings = allFindings().filter(
    ({ file }) => prefixes.length === 0 || prefixes.some((prefix) => file.startsWith(prefix)),
  );
  for (const { file, line, found, instead } of findings) {
    console.log(`${file}:${line}: "${found}"; write: ${instead}`);
  }
  console.log(`${findings.length} findings`);
  if (findings.length > 0) process.exitCode = 1;
}
