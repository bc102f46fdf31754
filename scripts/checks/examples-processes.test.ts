import { describe, expect, it } from 'vitest';
import { allExamples, checkExamples, examplesIn } from './examples.ts';

const FENCE = '```';

describe('the TypeScript examples', () => {
  it('compile, in doc comments and in pages', { timeout: 120_000 }, async () => {
    const examples = allExamples();
    expect(examples.length).toBeGreaterThan(10);
    expect(await checkExamples(examples)).toEqual({ code: 0, output: '' });
  });

  it('are reported by file and line when they do not compile', { timeout: 120_000 }, async () => {
    const comment = `/**\n * @example\n * ${FENCE}ts\n * const n: number = 'one';\n * ${FENCE}\n */`;
    const { code, output } = await checkExamples(examplesIn('libs/a/src/b.ts', comment));
    expect(code).not.toBe(0);
    expect(output).toMatch(/^libs\/a\/src\/b\.ts\(4,/);
  });

  it('are the TypeScript blocks of a page that contain imports; other blocks are not compiled', () => {
    const page = `${FENCE}ts\nimport 'a';\n${FENCE}\n${FENCE}sh\nls\n${FENCE}\n${FENCE}ts\nx;\n${FENCE}`;
    expect(examplesIn('docs/page.md', page)).toEqual([
      { file: 'docs/page.md', line: 2, code: "\nimport 'a';" },
    ]);
  });
});
