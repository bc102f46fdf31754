/** Checks the links between the Markdown pages of the repository, and the paths that they name. */
import { globSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const EXCLUDED = ['**/node_modules/**', 'vendor/**', 'dist/**'];
const LINK = /\]\(([^)\s]+)\)/g;
/** A code span that is a path from the root of the repository, without wildcards and placeholders. */
const PATH =
  /`((?:clients|deploy|docs|examples|libs|platform|proto|scripts|services|test|vendor)\/[\w./-]+\.\w+)`/g;

/** Returns the Markdown pages of the repository. */
export function allPages(): readonly string[] {
  return globSync('**/*.md', { exclude: EXCLUDED });
}

/** Returns one sentence for each broken link and each missing path in a page. */
export function brokenLinks(page: string, text: string): readonly string[] {
  const prose = text.replace(/^```[\s\S]*?^```/gm, '');
  const links = [...prose.replace(/`[^`\n]*`/g, '').matchAll(LINK)].map(
    ([, target = '']) => target,
  );
  const paths = [...prose.matchAll(PATH)].map(([, path = '']) => path);
  return [
    ...links.filter((target) => !targetExists(page, text, target)),
    ...paths.filter((path) => !exists(path)),
  ].map((target) => `${page}: ${target} does not exist`);
}

function targetExists(page: string, text: string, target: string): boolean {
  if (/^[a-z]+:/.test(target)) return true;
  const [path = '', heading = ''] = target.split('#', 2);
  if (path === '') return headings(text).includes(heading);
  const file = normalize(join(dirname(page), path));
  if (!exists(file)) return false;
  if (heading === '' || !file.endsWith('.md')) return true;
  return headings(readFileSync(file, 'utf8')).includes(heading);
}

/** The anchors of the headings of a page, as GitHub forms them. */
function headings(text: string): readonly string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

function exists(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}
