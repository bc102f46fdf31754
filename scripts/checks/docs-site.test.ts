import { cpSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { contentsOf } from '../../docs/.vitepress/contents.ts';
import { externalResources } from './docs-site.ts';

describe('the site of the documentation', () => {
  it('lists every page in its table of contents (PE-4)', () => {
    const sections = contentsOf('docs');
    expect(sections.map(({ text }) => text)).toEqual([
      'Tutorial',
      'How-to guides',
      'Reference',
      'Explanation',
      'Operations',
    ]);
    expect(sections[0]?.items[0]).toEqual({ text: 'First run', link: '/tutorial/first-run' });
  });

  it('is not built with a page that the table of contents does not list', () => {
    const copy = mkdtempSync(join(tmpdir(), 'docs-'));
    cpSync('docs', copy, { recursive: true });
    writeFileSync(join(copy, 'how-to/lost.md'), '# Lost\n');
    expect(() => contentsOf(copy)).toThrow('README.md does not list how-to/lost.md.');
  });

  it('is checked for scripts, styles and fonts that are loaded from other servers; links are permitted', () => {
    const page = [
      '<a href="https://example.com/page">',
      '<link rel="stylesheet" href="/assets/style.css">',
      '<link rel="stylesheet" href="https://fonts.example.com/inter.css">',
      '<script async src="//cdn.example.com/a.js"></script>',
      '@font-face { src: url("https://fonts.example.com/inter.woff2") }',
    ].join('\n');
    expect(externalResources(page)).toEqual([
      'https://fonts.example.com/inter.css',
      '//cdn.example.com/a.js',
      'https://fonts.example.com/inter.woff2',
    ]);
  });
});
