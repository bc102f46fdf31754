import { expect, it } from 'vitest';
import { printable } from './printable.ts';

it('shows control characters by their code and keeps other text (PE-2)', () => {
  expect(printable('1 200 USD für Müller\n\tok 🙂')).toBe('1 200 USD für Müller\n\tok 🙂');
  expect(printable('ok\u001b[2K\rrefund 1 USD\u009b2J\u202e\u2066')).toBe(
    'ok\\u001b[2K\\u000drefund 1 USD\\u009b2J\\u202e\\u2066',
  );
});
