import { seeded } from '@writ/testing/random';

/** An argument text and its expected verdict. */
export interface Payload {
  readonly text: string;
  readonly expected: 'accepted' | 'refused' | 'either';
}

const nested = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;

/** Invalid arguments; the name of each entry says why they are refused. */
export const INVALID_ARGUMENTS: Readonly<Record<string, string>> = {
  'an array': '[]',
  'a number': '42',
  'a string': '"{}"',
  nothing: 'null',
  'an empty text': '',
  'a blank text': ' ',
  'nesting above the limit': nested(33),
  'nesting far above the limit': nested(20_000),
  'deep arrays': `{"a":${'['.repeat(40)}${']'.repeat(40)}}`,
  'a key __proto__': '{"to":"anna","__proto__":{"admin":true}}',
  'an escaped key __proto__': '{"to":"anna","\\u005f_proto__":{"admin":true}}',
  'a deeply nested key __proto__': '{"to":"anna","cents":{"a":[{"__proto__":1}]}}',
  NaN: '{"to":"anna","cents":NaN}',
  infinity: '{"to":"anna","cents":-Infinity}',
  'a number too large for a double': '{"to":"anna","cents":1e999}',
  'a lone high surrogate': '{"to":"\\ud800"}',
  'a lone low surrogate': '{"to":"\\udc00 anna"}',
  'surrogates in reverse order': '{"to":"\\udc00\\ud800"}',
  'a lone surrogate in a key': '{"to":"anna","\\ud800":1}',
  'an integer past 2^53': '{"to":"anna","cents":9007199254740993}',
  'an integer past -2^53': '{"to":"anna","cents":-9007199254740993}',
  'a duplicate key': '{"to":"anna","to":"bert"}',
  'a duplicate key in another spelling': '{"to":"anna","\\u0074o":"bert"}',
  'a comment': '{"to":"anna"/* or not */}',
  'a trailing comma': '{"to":"anna",}',
  'single quotes': "{'to':'anna'}",
  'a raw line break in a string': '{"to":"an\nna"}',
  'a leading zero': '{"to":"anna","cents":007}',
  'a byte order mark': '\ufeff{"to":"anna"}',
  'trailing text': '{"to":"anna"}{"to":"bert"}',
  'a truncated object': '{"to":"anna"',
  'unknown arguments': '{"to":"anna","constructor":1,"toString":2}',
  'a missing argument': '{"cents":1}',
  'an empty argument': '{"to":"  "}',
  'arguments of the wrong type': '{"to":["anna"],"cents":true}',
};

const PIECES = [
  '{',
  '}',
  '[',
  ']',
  ':',
  ',',
  '"',
  '\\',
  '"to"',
  '"cents"',
  '"__proto__"',
  '"constructor"',
  'null',
  'true',
  'NaN',
  '-',
  '0',
  '1e5',
  '1e309',
  '9007199254740993',
  '0.1',
  '\\u0000',
  '\\ud83d',
  '\\ude00',
  '\u0000',
  '\ufeff',
  ' ',
  '\n',
  'ß',
  '😀',
  '\u2028',
  '//',
  "'",
  '{"to":"anna"}',
  '"\\u005f\\u005fproto__"',
];

/** An endless sequence of texts: random pieces, broken calls, valid calls, and values of every shape. */
export function* payloads(seed: number): Generator<Payload, never> {
  const random = seeded(seed);
  const upTo = (limit: number) => Math.floor(random() * limit);
  const pick = <T>(list: readonly T[]): T => list[upTo(list.length)] as T;
  const bad = Object.values(INVALID_ARGUMENTS).filter((text) => text.length < 1_000);
  const good = () =>
    JSON.stringify({ to: `anna ${upTo(1e6)} ß😀`, ...(upTo(2) === 0 && { cents: upTo(1e9) }) });

  const value = (depth: number): string => {
    switch (upTo(depth > 5 ? 4 : 6)) {
      case 0:
        return pick(['null', 'true', 'false', '""']);
      case 1:
        return String((random() - 0.5) * 10 ** upTo(25));
      case 2:
        return JSON.stringify(
          String.fromCharCode(...Array.from({ length: upTo(9) }, () => upTo(65_536))),
        );
      case 3:
        return pick(PIECES);
      case 4:
        return `[${Array.from({ length: upTo(5) }, () => value(depth + 1)).join(',')}]`;
      default:
        return `{${Array.from({ length: upTo(5) }, () => `${JSON.stringify(pick(PIECES))}:${value(depth + 1)}`).join(',')}}`;
    }
  };
  const broken = (text: string): string => {
    const at = upTo(text.length);
    const end = at + upTo(4);
    return `${text.slice(0, at)}${upTo(3) === 0 ? '' : pick(PIECES)}${text.slice(end)}`;
  };

  for (;;) {
    switch (upTo(5)) {
      case 0:
        yield {
          text: Array.from({ length: 1 + upTo(30) }, () => pick(PIECES)).join(''),
          expected: 'either',
        };
        break;
      case 1:
        yield { text: broken(good()), expected: 'either' };
        break;
      case 2:
        yield { text: good(), expected: 'accepted' };
        break;
      case 3:
        yield { text: pick(bad), expected: 'refused' };
        break;
      default:
        yield { text: `{"to":"anna","cents":${value(0)}}`, expected: 'either' };
    }
  }
}
