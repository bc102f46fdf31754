import { generateKeyPairSync, sign } from 'node:crypto';

/** A call with its writ, as a worker sends it. */
export interface SentCall {
  readonly call: {
    readonly tenant: string;
    readonly runId: string;
    readonly agentInstance: string;
    readonly callId: string;
  };
  readonly tool: string;
  readonly argumentsJson: string;
  readonly writ: string;
}

/** A mutated call; its writ no longer matches it. */
export interface Mutation {
  /** What was changed. */
  readonly what: string;
  readonly call: SentCall;
}

/** Returns the next number in [0, 1) of a sequence that depends only on the seed. */
export type Chance = () => number;

const CLAIMS = [
  'tenant',
  'run_id',
  'agent',
  'call_id',
  'tool',
  'definition_digest',
  'args_sha256',
  'allowed_tools',
  'decision_id',
] as const;
const ENVELOPE = ['exp', 'iat', 'aud', 'iss', 'jti', 'sub'] as const;
const otherKey = generateKeyPairSync('ed25519').privateKey;

/** Returns a copy of `sent` with one change to the call or to its writ (TG-1). */
export function mutate(sent: SentCall, chance: Chance): Mutation {
  const kind = pick(MUTATIONS, chance);
  return { what: kind.what, call: kind.change(sent, chance) };
}

interface Kind {
  readonly what: string;
  change(sent: SentCall, chance: Chance): SentCall;
}

const ofCall = (what: string, field: keyof SentCall['call']): Kind => ({
  what,
  change: (sent, chance) => ({
    ...sent,
    call: { ...sent.call, [field]: changedText(sent.call[field], chance) },
  }),
});

const ofWrit = (what: string, change: (writ: Parts, chance: Chance) => Parts): Kind => ({
  what,
  change(sent, chance) {
    const { header, payload, signature } = change(partsOf(sent.writ), chance);
    return { ...sent, writ: [encoded(header), encoded(payload), signature].join('.') };
  },
});

const MUTATIONS: readonly Kind[] = [
  ofCall('tenant of the call', 'tenant'),
  ofCall('run of the call', 'runId'),
  ofCall('agent of the call', 'agentInstance'),
  ofCall('call_id of the call', 'callId'),
  {
    what: 'tool of the call',
    change: (sent, chance) => ({ ...sent, tool: changedText(sent.tool, chance) }),
  },
  {
    what: 'arguments of the call',
    change: (sent, chance) => ({
      ...sent,
      argumentsJson: changedText(sent.argumentsJson, chance, ' 1"x\\'),
    }),
  },
  ...CLAIMS.map((claim) =>
    ofWrit(`${claim} of the writ`, ({ payload, ...rest }, chance) => {
      const writ = payload.writ as Record<string, unknown>;
      return { ...rest, payload: { ...payload, writ: withChanged(writ, claim, chance) } };
    }),
  ),
  ...ENVELOPE.map((claim) =>
    ofWrit(`${claim} of the writ`, ({ payload, ...rest }, chance) => ({
      ...rest,
      payload: withChanged(payload, claim, chance),
    })),
  ),
  ofWrit('key id of the writ', ({ header, ...rest }, chance) => ({
    ...rest,
    header: withChanged(header, 'kid', chance),
  })),
  ofWrit('algorithm of the writ', ({ header, ...rest }, chance) => ({
    ...rest,
    header: { ...header, alg: pick(['none', 'HS256', 'ES256', 'eddsa', ''], chance) },
  })),
  ofWrit('signature of the writ, by a bit', ({ signature, ...rest }, chance) => {
    const bytes = Buffer.from(signature, 'base64url');
    const at = Math.floor(chance() * bytes.length);
    bytes[at] = (bytes[at] ?? 0) ^ (1 << Math.floor(chance() * 8));
    return { ...rest, signature: bytes.toString('base64url') };
  }),
  ofWrit('signature of the writ, by a character', ({ signature, ...rest }, chance) => ({
    ...rest,
    signature: changedText(signature, chance, 'AQgw-_'),
  })),
  {
    what: 'signer of the writ',
    change(sent) {
      const signed = sent.writ.split('.').slice(0, 2).join('.');
      const signature = sign(null, Buffer.from(signed), otherKey).toString('base64url');
      return { ...sent, writ: `${signed}.${signature}` };
    },
  },
];

/** Names of all mutations. */
export const MUTATED: readonly string[] = MUTATIONS.map(({ what }) => what);

interface Parts {
  readonly header: Record<string, unknown>;
  readonly payload: Record<string, unknown>;
  readonly signature: string;
}

function partsOf(writ: string): Parts {
  const [header = '', payload = '', signature = ''] = writ.split('.');
  const decode = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString());
  return { header: decode(header), payload: decode(payload), signature };
}

function encoded(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}

function withChanged(object: Record<string, unknown>, key: string, chance: Chance) {
  return { ...object, [key]: changed(object[key], chance) };
}

function changed(value: unknown, chance: Chance): unknown {
  if (typeof value === 'number') return value + Math.ceil(chance() * 1_000_000);
  if (typeof value === 'string') return changedText(value, chance);
  if (Array.isArray(value)) return [...value, `more-${Math.floor(chance() * 1_000)}`];
  return withChanged({ ...(value as Record<string, unknown>) }, 'instance', chance);
}

/** Returns the text with one character replaced, inserted or removed. */
function changedText(text: string, chance: Chance, alphabet = 'abcxyz0123456789_-'): string {
  for (;;) {
    const at = Math.floor(chance() * (text.length + 1));
    const put = chance() < 0.2 ? '' : alphabet[Math.floor(chance() * alphabet.length)];
    const next = text.slice(0, at) + put + text.slice(at + (chance() < 0.5 ? 1 : 0));
    if (next !== text && next !== '') return next;
  }
}

function pick<T>(from: readonly T[], chance: Chance): T {
  const picked = from[Math.floor(chance() * from.length)];
  if (picked === undefined) throw new RangeError('The list is empty.');
  return picked;
}
