import { describe, expect, it } from 'vitest';
import { capturedInput, capturedOutput } from './captured.ts';
import type { ChatPart } from './chat.ts';

const input = (...parts: readonly ChatPart[]) => capturedInput([{ role: 'user', parts }]);
const text = (content: string) => ({ type: 'text', text: content }) as const;

describe('captured content', () => {
  it('follows the format of the GenAI conventions (SYS-1)', () => {
    const messages = capturedInput([
      { role: 'system', parts: [text('Be brief.')] },
      {
        role: 'assistant',
        parts: [{ type: 'tool_use', id: 'use-1', tool: 'pay', argumentsJson: '{"to":"anna"}' }],
      },
      {
        role: 'tool',
        parts: [{ type: 'tool_result', id: 'use-1', content: 'Paid.', isError: false }],
      },
      { role: 'user', parts: [{ type: 'image', url: 'data:image/png;base64,AAAA' }] },
    ]);
    expect(JSON.parse(messages)).toEqual([
      { role: 'system', parts: [{ type: 'text', content: 'Be brief.' }] },
      {
        role: 'assistant',
        parts: [{ type: 'tool_call', id: 'use-1', name: 'pay', arguments: '{"to":"anna"}' }],
      },
      {
        role: 'tool',
        parts: [{ type: 'tool_call_response', id: 'use-1', response: 'Paid.' }],
      },
      { role: 'user', parts: [{ type: 'uri', modality: 'image', uri: '[omitted]' }] },
    ]);
    const answer = { text: 'Done.', toolUses: [], endReason: 'end_turn', providerModel: 'm' };
    expect(JSON.parse(capturedOutput({ ...answer, endReason: 'end_turn' }))).toEqual([
      {
        role: 'assistant',
        parts: [{ type: 'text', content: 'Done.' }],
        finish_reason: 'end_turn',
      },
    ]);
  });

  it.each([
    ['a bearer token', 'Authorization: Bearer abcdefgh12345678', 'abcdefgh12345678'],
    ['a JWS', 'It is eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJhIn0.c2ln here', 'eyJzdWIiOiJhIn0'],
    ['a JWS after a name', 'a-b-eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJhIn0.c2ln', 'eyJzdWIiOiJhIn0'],
    ['a provider key', 'Use sk-proj-abcdefghijklmnop.', 'abcdefghijklmnop'],
    ['a cloud key', 'AKIAIOSFODNN7EXAMPLE', 'AKIAIOSFODNN7EXAMPLE'],
    ['a password in a URL', 'postgres://writ:hunter22@db/writ', 'hunter22'],
    ['a password in a text', 'The password: hunter22.', 'hunter22'],
    ['a field of JSON', '{"user":{"api_key":["hunter22"]}}', 'hunter22'],
    ['a private key', '-----BEGIN PRIVATE KEY-----\nhunter22', 'hunter22'],
  ])('redacts %s (SYS-6)', (_, content, secret) => {
    const parts: ChatPart[] = [
      text(content),
      { type: 'tool_use', id: 'u', tool: 't', argumentsJson: content },
      { type: 'tool_result', id: 'u', content: content, isError: true },
    ];
    const captured = input(...parts);
    expect(captured).not.toContain(secret);
    expect(captured.match(/\[redacted\]/g)).toHaveLength(3);
  });

  it('does not redact ordinary text', () => {
    const content = 'The token budget was 4,200 of 4,000; ask Anna about the secretary.';
    expect(JSON.parse(input(text(content)))[0].parts[0].content).toBe(content);
  });

  it('truncates long texts and omits the oldest messages of a long conversation', () => {
    const long = capturedInput([{ role: 'user', parts: [text('x'.repeat(1_000_000))] }]);
    expect(long.length).toBeLessThan(5_000);
    expect(long).toContain('characters omitted');
    const messages = Array.from({ length: 100 }, (_, at) => ({
      role: 'user' as const,
      parts: [text(`${at} ${'ü'.repeat(400)}`)],
    }));
    const captured = capturedInput(messages);
    expect(Buffer.byteLength(captured)).toBeLessThan(16_384 + 200);
    const kept = JSON.parse(captured) as { parts: { content: string }[] }[];
    expect(kept.at(-1)?.parts[0]?.content).toMatch(/^99 /);
    expect(kept[0]?.parts[0]?.content).toBe(`[${101 - kept.length} messages omitted]`);
  });

  it.each([
    ['repeats the first characters of a JWS and a hyphen', 'eyJ-'.repeat(1_000_000)],
    ['looks like the first part of a JWS', `${'eyJ-'.repeat(1_000)}.${'a'.repeat(1_000_000)}`],
    ['looks like the scheme of a URL', 'a.'.repeat(2_000_000)],
    ['looks like several parts of a JWS', 'eyJ-eyJ.'.repeat(500_000)],
    ['looks like a list of URLs', '://a:'.repeat(500_000)],
    ['looks like a JSON array', `[${'0,'.repeat(2_000_000)}0]`],
  ])('takes little time for a long text that %s (BD-1, BD-2)', (_, content) => {
    const result: ChatPart = { type: 'tool_result', id: 'u', content, isError: false };
    const startedAt = performance.now();
    const captured = input(result);
    expect(performance.now() - startedAt).toBeLessThan(2_000);
    expect(captured.includes('characters omitted')).toBe(true);
  });

  it('takes little time for many texts that are redacted completely (BD-1, BD-2)', () => {
    const parts = Array.from({ length: 500 }, () => text(`sk-${'eyJ-'.repeat(10_000)}`));
    const messages = parts.map((part) => ({ role: 'user' as const, parts: [part] }));
    const startedAt = performance.now();
    expect(capturedInput(messages)).toContain('[494 messages omitted]');
    expect(input(...parts)).toContain('[1 messages omitted]');
    expect(performance.now() - startedAt).toBeLessThan(2_000);
  });

  it('omits a long text of JSON, in which truncation hides the names of fields (SYS-6)', () => {
    const secret = { authorization: ['hunter22'], text: 'x'.repeat(70_000) };
    const captured = input(text(JSON.stringify(secret)));
    expect(captured).toHaveLength(84);
    expect(captured).toContain('"… [70040 characters omitted]"');
  });

  it('omits the end of the searched part of a text, which may contain half a secret (SYS-6)', () => {
    const keys = `sk-${'a'.repeat(7_000)} `;
    const url = `postgres://writ:${'hunter22'.repeat(200)}@db/writ`;
    const captured = input(text(`${keys}${url}${' x'.repeat(10_000)}`));
    expect(captured).not.toContain('hunter22');
  });

  it.each([
    ['the claims of a JWS', `eyJhbGciOiJSUzI1NiJ9.eyJ${'claim'.repeat(2_000)}.c2ln`, 'claim'],
    ['the header of a JWS', `eyJ${'header'.repeat(2_000)}.eyJzdWIiOiJhIn0.c2ln`, 'header'],
    ['a JWS after a name', `a-b-eyJhbGciOiJSUzI1NiJ9.eyJ${'claim'.repeat(2_000)}.c2ln`, 'claim'],
    ['a password in a URL', `postgres://writ:${'hunter22'.repeat(1_000)}@db/writ`, 'hunter22'],
  ])('redacts %s also when the searched part ends within it (SYS-6)', (_, secret, part) => {
    const captured = input(text(`${'x '.repeat(1_500)}${secret}${' x'.repeat(10_000)}`));
    expect(captured).not.toContain(part);
    expect(captured).toContain('characters omitted');
  });
});
