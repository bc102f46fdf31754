import { readFileSync } from 'node:fs';
import type { DescMessage } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { createProgram } from '../clients/cli/src/cli.ts';
import { commentOf, readContracts } from './contracts.ts';
import { generatedPages } from './pages.ts';

const pages = generatedPages();
const contracts = readContracts();

describe('the generated pages', () => {
  it.each([...pages])('%s is as the code declares it (PE-4)', (file, content) => {
    expect(readFileSync(file, 'utf8'), 'run npm run pages').toBe(content);
  });

  it('list every RPC with its callers (PE-4)', () => {
    const api = [...pages].filter(([file]) => file.startsWith('docs/reference/api/'));
    const text = api.map(([, content]) => content).join('\n');
    const services = contracts.flatMap((file) => file.services);
    expect(services.length).toBeGreaterThan(12);
    for (const service of services) {
      expect(text).toContain(`\`${service.typeName}\``);
      for (const { name, input } of service.methods) {
        const row = new RegExp(`^\\| \`${name}\` \\| \\[${input.name}\\].*`, 'm').exec(text)?.[0];
        const callers = row?.split(' | ')[3];
        expect(callers, `${service.name}.${name}`).toMatch(
          /caller|approver|admin|service|worker|gateway|supervisor|proxy|everyone/,
        );
      }
    }
  });

  it('describe every field and every value of the contracts (PE-4)', () => {
    const undescribed = contracts.flatMap((file) => [
      ...file.messages.flatMap(fieldsOf).filter((field) => commentOf(field) === ''),
      ...file.enums.flatMap(({ values }) => values.filter((value) => commentOf(value) === '')),
    ]);
    expect(undescribed.map(String)).toEqual([]);
  });

  it('list every event type with its emitter (PE-4, HK-1)', () => {
    const types = contracts.flatMap((file) => file.enums).find((e) => e.name === 'HookEventType');
    const emitted = types?.values.filter(({ number }) => number > 0) ?? [];
    expect(emitted.length).toBeGreaterThan(20);
    for (const { localName } of emitted) {
      const row = new RegExp(`^\\| \`${localName}\` \\| [A-Z][^|]+ \\| [A-Z]`, 'm');
      expect(pages.get('docs/reference/events.md')).toMatch(row);
    }
  });

  it('list every command and every option of writ (PE-4, PE-2)', () => {
    const io = { env: {}, print: () => undefined, warn: () => undefined };
    const page = pages.get('docs/reference/commands.md');
    const { commands } = createProgram(io, () => undefined);
    expect(commands.length).toBeGreaterThan(10);
    for (const command of commands) {
      for (const each of [command, ...command.commands]) {
        const path = each === command ? each.name() : `${command.name()} ${each.name()}`;
        expect(page).toContain(`# writ ${path}\n`);
        for (const { flags, description } of each.options.filter(({ hidden }) => !hidden)) {
          expect(page).toContain(`| \`${flags}\` |`);
          expect(description, `${path} ${flags}`).not.toBe('');
        }
      }
    }
  });
});

function fieldsOf(message: DescMessage): DescMessage['fields'] {
  return [...message.fields, ...message.nestedMessages.flatMap(fieldsOf)];
}
