import { describe, expect, it } from 'vitest';
import { applyAllowed, findWords, isChecked, readAllowed } from './words.ts';

const found = (text: string, file = 'libs/bus/src/a.ts') =>
  findWords(file, text).map(({ line, found: word }) => `${line} ${word}`);

describe('the word check', () => {
  it('finds banned words in prose, whatever their case', () => {
    expect(found('// Fine.\n// Nobody knows.')).toEqual(['2 nobody']);
    expect(found('embodynobodyness')).toEqual([]);
  });

  it('finds banned phrases across the lines of a comment', () => {
    expect(found('/**\n * A call under\n * way.\n */')).toEqual(['2 under way']);
    expect(found('# A call\n# is under\n# way.')).toEqual(['2 under way']);
  });

  it('finds banned phrases in identifiers and in file names', () => {
    expect(found('const callsUnderWay = CALLS_UNDER_WAY;')).toEqual(['1 under way', '1 under way']);
    expect(found('', 'libs/bus/src/calls-under-way.ts')).toEqual(['0 under way']);
  });

  it('finds identifiers that start with make instead of create', () => {
    expect(found('makeFolder(); // Calls that a client makes.')).toEqual(['1 makeFolder']);
  });

  it('finds banned words for calls in progress, tests, invalid values and limits, and accepts their permitted uses', () => {
    expect(found('class Flights {}')).toEqual(['1 flights']);
    expect(found('// Calls in\n// flight, pre-flight checks: inFlight.')).toEqual([]);
    expect(found('// npm run proofs')).toEqual(['1 proofs']);
    expect(found('// Rejects what is none; there is none.')).toEqual(['1 is none']);
    expect(found('const retryBounds = 1; // Upper bounds.')).toEqual(['1 bounds']);
  });

  it.each([
    'clients/console/src/app.tsx',
    'deploy/grafana/red.json',
    'clients/python/pyproject.toml',
    'deploy/systemd/writ@.service',
    'docs/explanation/request-flow.svg',
    '.ci/run',
  ])('reads %s', (file) => {
    expect(isChecked(file)).toBe(true);
  });

  it.each(['package-lock.json', 'vendor/proto/a.proto', 'libs/contracts/gen/a_pb.ts'])(
    'skips %s, which is generated or maintained by a third party',
    (file) => {
      expect(isChecked(file)).toBe(false);
    },
  );

  it('accepts the names of examples and "stands for"', () => {
    expect(found("examples/refund-desk examples/news-feed - stands for 'none'")).toEqual([]);
  });
});

describe('the allow-list of the word check', () => {
  it('reads a path prefix and a pattern per line', () => {
    const [entry] = readAllowed('# comment\n\ndocs/adr | nobody | quoted\n');
    expect(entry?.prefix).toBe('docs/adr');
    expect(entry?.pattern.test('nobody')).toBe(true);
  });

  it('reports exceptions that allow no finding', () => {
    const allowed = readAllowed('libs/a | nobody | quoted\nlibs/b | nobody | quoted\n');
    const { rest, unused } = applyAllowed(findWords('libs/a/x.ts', '// Nobody knows.'), allowed);
    expect(rest).toEqual([]);
    expect(unused.map(({ line }) => line)).toEqual(['libs/b | nobody | quoted']);
  });

  it('rejects a line without a reason', () => {
    expect(() => readAllowed('docs/adr | nobody |')).toThrow('reason');
  });
});
