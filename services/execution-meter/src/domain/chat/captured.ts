import type { ChatAnswer, ChatMessage, ChatPart } from './chat.ts';

/** Maximum length of one part, in characters. */
const MAX_TEXT = 4_096;
/** Maximum number of characters searched for secrets; more than {@link MAX_TEXT}, because redaction shortens a text. */
const MAX_SEARCHED = 2 * MAX_TEXT;
/**
 * Number of characters at the end of the searched text that are omitted if the text continues: the text may be cut
 * within a secret, which is then not recognized. Larger than the beginning of a secret that {@link SECRETS} and
 * {@link CUT_SECRETS} need to recognize it.
 */
const CUT_MARGIN = 2_048;
/**
 * Maximum length of a text that begins like JSON, in characters. A longer text is omitted, because the names of the
 * fields in cut JSON are not recognized.
 */
const MAX_JSON = 65_536;
/** Maximum size of the message list, in bytes of JSON. */
const MAX_BYTES = 16_384;
/** Maximum number of characters of the message list that are processed, so that redaction takes little time (BD-1). */
const MAX_PROCESSED = 4 * MAX_JSON;
const REDACTED = '[redacted]';

/** Field names whose values are redacted at any depth. */
const SECRET_NAME =
  /^(?:.*[_-])?(?:authorization|cookie|credentials?|pass(?:word|phrase|wd)|private[_-]?key|secret|token|api[_-]?key|access[_-]?key)$/i;

/** Patterns of secrets, each with its replacement. The time to search for each is linear in the length of the text. */
const SECRETS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/gs, REDACTED],
  [/\b(Bearer|Basic)\s+[\w~+/.=-]{8,}/gi, `$1 ${REDACTED}`],
  // A JWS. The lookahead ensures that the first match of `eyJ` succeeds; otherwise each `-eyJ` would be tried.
  [/(?<![\w-])(?=[\w-]+\.[\w-]+\.)([\w-]*?\b)eyJ[\w-]{5,}\.[\w-]+\.[\w-]*/g, `$1${REDACTED}`],
  [/\b(?:sk|pk|rk|ghp|gho|ghs|xox[abpr]|glpat|wrt)[-_][\w-]{12,}/g, REDACTED],
  [/\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g, REDACTED],
  // A password in a URL.
  [/(:\/\/[^\s/:@]*:)[^\s/@]+@/g, `$1${REDACTED}@`],
  [
    /((?:password|passphrase|secret|token|api[_-]?key|access[_-]?key)["']?\s*[:=]\s*["']?)[^\s"',;&]+/gi,
    `$1${REDACTED}`,
  ],
];

/** Patterns of secrets at the end of a text that is cut within the secret. The time to search is linear, too. */
const CUT_SECRETS: typeof SECRETS = [
  // The first part, or the first two parts, of a JWS.
  [/(?<![\w-])(?=[\w-]+(?:\.[\w-]*)?$)([\w-]*?\b)eyJ[\w-]{5,}(?:\.[\w-]*)?$/, `$1${REDACTED}`],
  [/(:\/\/[^\s/:@]*:)[^\s/@]+$/, `$1${REDACTED}`],
];

/** Returns messages as JSON in the format of the GenAI conventions, redacted and truncated. */
export function capturedInput(messages: readonly ChatMessage[]): string {
  return fitting(messages);
}

/** Returns an answer as JSON in the format of the GenAI conventions, redacted and truncated. */
export function capturedOutput({ text, toolUses, endReason }: ChatAnswer): string {
  const parts: readonly ChatPart[] = [
    ...(text === '' ? [] : [{ type: 'text', text } as const]),
    ...toolUses.map((use) => ({ type: 'tool_use', ...use }) as const),
  ];
  return fitting([{ role: 'assistant', parts, endReason }]);
}

function capturedPart(part: ChatPart): object {
  switch (part.type) {
    case 'text':
      return { type: 'text', content: shortened(part.text) };
    case 'tool_use': {
      const { id, tool: name, argumentsJson } = part;
      return { type: 'tool_call', id, name, arguments: shortened(argumentsJson) };
    }
    case 'tool_result':
      return { type: 'tool_call_response', id: part.id, response: shortened(part.content) };
    case 'image':
      return { type: 'uri', modality: 'image', uri: '[omitted]' };
    case 'document':
      return { type: 'uri', modality: 'document', uri: '[omitted]' };
  }
}

/**
 * Returns as JSON the newest messages that fit {@link MAX_BYTES}, redacted and truncated. If older messages are
 * omitted, the first element is a message with their number.
 */
function fitting(
  messages: readonly (ChatMessage & Partial<Pick<ChatAnswer, 'endReason'>>)[],
): string {
  const kept: string[] = [];
  let bytes = 0;
  let processed = 0;
  for (const { role, parts, endReason } of messages.toReversed()) {
    for (const part of parts) processed += Math.min(textOf(part).length, MAX_JSON);
    if (processed > MAX_PROCESSED) break;
    const message = { role, parts: parts.map(capturedPart), finish_reason: endReason };
    const json = JSON.stringify(message);
    bytes += Buffer.byteLength(json) + 1;
    if (bytes > MAX_BYTES) break;
    kept.unshift(json);
  }
  const omitted = messages.length - kept.length;
  if (omitted > 0) {
    const content = `[${omitted} messages omitted]`;
    kept.unshift(JSON.stringify({ role: 'system', parts: [{ type: 'text', content }] }));
  }
  return `[${kept.join(',')}]`;
}

/** Returns the text of a part that {@link shortened} redacts; empty for images and documents. */
function textOf(part: ChatPart): string {
  switch (part.type) {
    case 'text':
      return part.text;
    case 'tool_use':
      return part.argumentsJson;
    case 'tool_result':
      return part.content;
    default:
      return '';
  }
}

/** Returns a text redacted and truncated; in JSON, the values of fields with secret names are redacted, too. */
function shortened(text: string): string {
  const isJson = /^\s*[[{]/.test(text);
  if (isJson && text.length > MAX_JSON) return omitting('', text.length);
  const known = (isJson ? redactedJson(text) : undefined) ?? text;
  const searched = known.slice(0, MAX_SEARCHED);
  const rest = known.length - searched.length;
  const secrets = rest === 0 ? SECRETS : [...CUT_SECRETS, ...SECRETS];
  const clean = secrets.reduce(
    (found, [pattern, replacement]) => found.replace(pattern, replacement),
    searched,
  );
  const complete = rest === 0 ? clean.length : Math.max(0, clean.length - CUT_MARGIN);
  const length = Math.min(MAX_TEXT, complete);
  return omitting(clean.slice(0, length), clean.length - length + rest);
}

/** Returns the beginning of a text, and the number of characters that are omitted after it. */
function omitting(beginning: string, characters: number): string {
  if (characters === 0) return beginning;
  return `${beginning.toWellFormed()}… [${characters} characters omitted]`;
}

function redactedJson(text: string): string | undefined {
  try {
    return JSON.stringify(redactedFields(JSON.parse(text)));
  } catch {
    return undefined;
  }
}

/** Returns a value with its secret fields redacted. A reviver of JSON.parse is slower, and also gets the list items. */
function redactedFields(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(redactedFields);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, field]) => [
      name,
      SECRET_NAME.test(name) ? REDACTED : redactedFields(field),
    ]),
  );
}
