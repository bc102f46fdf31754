import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { allPages, brokenLinks } from './links.ts';

describe('the Markdown pages', () => {
  it('contain only links and paths to existing files and headings', () => {
    const pages = allPages();
    expect(pages).toContain('docs/explanation/guided-tour.md');
    expect(pages.flatMap((page) => brokenLinks(page, readFileSync(page, 'utf8')))).toEqual([]);
  });

  it('start with the number in the file name if they are decision records', () => {
    const decisions = allPages().filter((page) => /^docs\/adr\/\d/.test(page));
    expect(decisions.length).toBeGreaterThan(20);
    for (const page of decisions) {
      const number = Number(page.slice('docs/adr/'.length, 'docs/adr/0000'.length));
      expect(readFileSync(page, 'utf8')).toMatch(new RegExp(`^# ${number}\\. `));
    }
  });

  it('are reported with the target that does not exist', () => {
    const page = [
      '# Here',
      '[a](../README.md) [b](#here) [c](https://example.com) `docs/README.md` `libs/*/x.ts`',
      '[d](nothing.md) [e](#nowhere) [f](../README.md#nowhere) `libs/nothing.ts`',
      '```',
      '[g](nothing.md)',
      '```',
    ].join('\n');
    expect(brokenLinks('docs/page.md', page)).toEqual(
      ['nothing.md', '#nowhere', '../README.md#nowhere', 'libs/nothing.ts'].map(
        (target) => `docs/page.md: ${target} does not exist`,
      ),
    );
  });
});
