/** The site of the documentation: `npm run docs` builds it into dist/docs, `npm run docs:dev` serves it. */
import { cpSync } from 'node:fs';
import { join, posix } from 'node:path';
import { defineConfig, type MarkdownOptions } from 'vitepress';
import { contentsOf } from './contents.ts';

type Markdown = Parameters<NonNullable<MarkdownOptions['config']>>[0];

const DOCS = join(import.meta.dirname, '..');

export default defineConfig({
  title: 'Writ',
  description: 'Runs LLM agents under supervision.',
  cleanUrls: false,
  outDir: join(DOCS, '../dist/docs'),
  cacheDir: join(DOCS, '../node_modules/.cache/vitepress'),
  rewrites: {
    'README.md': 'index.md',
    'adr/README.md': 'adr/index.md',
    'reference/api/README.md': 'reference/api/index.md',
  },
  markdown: {
    languageAlias: { promql: 'sql' },
    // The anchors of headings are the same as on GitHub, so that a link works on the site and on GitHub.
    anchor: { slugify: githubAnchor },
    config: withoutOutsideLinks,
  },
  themeConfig: {
    sidebar: contentsOf(DOCS),
    outline: [2, 3],
    search: { provider: 'local' },
  },
  buildEnd: ({ outDir }) => {
    const schemas = 'reference/schemas';
    cpSync(join(DOCS, schemas), join(outDir, schemas), { recursive: true });
  },
});

function githubAnchor(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');
}

/** Shows a link to a file of the repository as the name of the file, because the site does not contain it. */
function withoutOutsideLinks(markdown: Markdown): void {
  markdown.core.ruler.push('outside-links', ({ tokens, env }) => {
    // The title of a container is rendered without the path of its page.
    const { relativePath = '' } = env as { readonly relativePath?: string };
    const folder = posix.dirname(relativePath);
    for (const { children } of tokens) {
      const open: boolean[] = [];
      for (const token of children ?? []) {
        if (token.type === 'link_open') {
          // Relative to docs/.
          const target = posix.join(folder, String(token.attrGet('href')));
          open.push(target.startsWith('../'));
          if (open.at(-1)) {
            token.tag = 'span';
            token.attrs = [['title', target.slice('../'.length)]];
          }
        } else if (token.type === 'link_close' && open.pop()) token.tag = 'span';
      }
    }
  });
}
