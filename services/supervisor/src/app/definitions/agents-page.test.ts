import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { loadAgents } from './agents-file.ts';

const PAGE = new URL('../../../../../docs/how-to/agents.md', import.meta.url);

/** The YAML examples of the page, each as a whole agents file. */
function examples(): string[] {
  const page = readFileSync(PAGE, 'utf8');
  return Array.from(page.matchAll(/^```yaml\n(.*?)^```$/gms), ([, text = '']) =>
    /^agents:/m.test(text) ? text : agentWith(text),
  );
}

/** An agents file with one agent that has these settings. */
function agentWith(settings: string): string {
  const indented = settings.replace(/^(?=.)/gm, '    ');
  return `agents:\n  - name: a\n    kind: react\n    model: { model: m }\n    tools: [search]\n${indented}`;
}

describe('the examples of docs/how-to/agents.md', () => {
  it.each(examples().map((text) => [text]))(
    'load as an agents file (AG-1, AG-9, SYS-3):\n%s',
    (text) => {
      const { agents } = loadAgents({ text, file: 'agents.md' });
      expect(agents.size).toBeGreaterThan(0);
    },
  );

  it('include middleware, a pipeline of strategies and the extensions of modules (AG-8, AG-9)', () => {
    const all = examples().join('\n');
    expect(all).toMatch(/^ {4}middleware:$/m);
    expect(all).toMatch(/^ {6}strategies:$/m);
    expect(all).toMatch(/^extensions:$/m);
  });
});
