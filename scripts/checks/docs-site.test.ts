import { cpSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createMarkdownRenderer } from 'vitepress';
import { describe, expect, it } from 'vitest';
import config from '../../docs/.vitepress/config.ts';
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

  it.each([
    ['reference/api/tool.md', '../../operations/tls.md#certificates'],
    ['reference/api/README.md', '../reason-codes.md'],
    ['how-to/policy.md', '../reference/schemas/agents.json'],
    ['how-to/policy.md', '#functions'],
    ['how-to/policy.md', 'https://example.com/page'],
  ])('keeps a link from %s to %s (PE-4)', async (page, target) => {
    expect(await rendered(page, target)).toContain('<a href=');
  });

  it.each([
    ['how-to/policy.md', '../../libs/policy/README.md', 'libs/policy/README.md'],
    ['adr/index.md', '../../adr/README.md', 'adr/README.md'],
    ['index.md', '../CONTRIBUTING.md', 'CONTRIBUTING.md'],
    ['reference/api/run.md', '../../../proto/writ/run/v1/run.proto', 'proto/writ/run/v1/run.proto'],
  ])('shows a link from %s to %s, outside of docs/, as text (PE-4)', async (page, target, file) => {
    expect(await rendered(page, target)).toContain(`<span title="${file}">Text</span>`);
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

/** Renders a page that contains only a link, as the site does. */
async function rendered(page: string, target: string): Promise<string> {
  // Without a highlighter, because the page has no code.
  const options = { ...config.markdown, highlight: (code: string) => code };
  const markdown = await createMarkdownRenderer('docs', options);
  return markdown.render(`[Text](${target})`, { relativePath: page });
}
