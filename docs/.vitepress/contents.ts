/** The table of contents of the site, read from docs/README.md. */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** A page in the sidebar. The README.md of a folder has the other pages of the folder as items. */
interface Entry {
  readonly text: string;
  readonly link: string;
  readonly collapsed?: boolean;
  readonly items?: Entry[];
}

/** One section of the table of contents, as VitePress shows it in the sidebar. */
export interface Section {
  readonly text: string;
  readonly items: Entry[];
}

const ENTRY = /^(?:-|\d+\.) \[(.+?)\]\(((?!\.\.\/).+?\.md)\)/gm;

/**
 * Returns the sections of docs/README.md with the pages that they list. The README.md of a folder lists the other pages
 * of the folder.
 *
 * @param folder the folder of the documentation
 * @throws Error that names the pages that no list contains
 */
export function contentsOf(folder: string): Section[] {
  const listed = new Set(['README.md']);
  const entriesOf = (text: string, below: string): Entry[] =>
    [...text.matchAll(ENTRY)].map(([, text = '', path = '']) => {
      const page = join(below, path);
      listed.add(page);
      const entry = { text, link: `/${page.replace(/README\.md$|\.md$/, '')}` };
      if (!page.endsWith('README.md')) return entry;
      const items = entriesOf(readFileSync(join(folder, page), 'utf8'), dirname(page));
      return { ...entry, collapsed: true, items };
    });
  const [, ...parts] = readFileSync(join(folder, 'README.md'), 'utf8').split(/^## /m);
  const sections = parts.map((part) => ({
    text: part.slice(0, part.indexOf('\n')),
    items: entriesOf(part, ''),
  }));
  const missing = globSync('**/*.md', { cwd: folder }).filter((page) => !listed.has(page));
  if (missing.length > 0) {
    throw new Error(`${join(folder, 'README.md')} does not list ${missing.sort().join(', ')}.`);
  }
  return sections;
}
