/** The table of contents of the site, read from docs/README.md. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** One section of the table of contents, as VitePress shows it in the sidebar. */
export interface Section {
  readonly text: string;
  readonly items: { text: string; link: string }[];
}

const ENTRY = /^- \[(.+?)\]\((.+?\.md)\)/gm;

/**
 * Returns the sections of docs/README.md with the pages that they list.
 *
 * @param folder the folder of the documentation
 * @throws Error that names the pages of the folder that README.md does not list; the decisions list theirs in adr/README.md
 */
export function contentsOf(folder: string): Section[] {
  const [, ...parts] = readFileSync(join(folder, 'README.md'), 'utf8').split(/^## /m);
  const sections = parts.map((part) => ({
    text: part.slice(0, part.indexOf('\n')),
    items: [...part.matchAll(ENTRY)].map(([, text = '', page = '']) => ({
      text,
      link: `/${page.replace(/README\.md$|\.md$/, '')}`,
    })),
  }));
  const listed = new Set(sections.flatMap(({ items }) => items.map(({ link }) => link)));
  const missing = globSync('*/**/*.md', { cwd: folder, exclude: ['adr/0*'] }).filter(
    (page) => !listed.has(`/${page.replace(/README\.md$|\.md$/, '')}`),
  );
  if (missing.length > 0) {
    throw new Error(`${join(folder, 'README.md')} does not list ${missing.sort().join(', ')}.`);
  }
  return sections;
}
