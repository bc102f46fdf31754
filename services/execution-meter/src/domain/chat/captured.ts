import type { ChatAnswer, ChatMessage, ChatPart } from './chat.ts';

/** Maximum length of one part, in characters. */
const MAX_TEXT = 4_096;
/** Maximum size of the message list, in bytes of JSON. */
const MAX_BYTES = 16_384;
const REDACTED = '[redacted]';

/** Field names whose values are redacted at any depth. */
const SECRET_NAME =
  /^(?:.*[_-])?(?:authorization|cookie|credentials?|pass(?:word|phrase|wd)|private[_-]?key|secret|token|api[_-]?key|access[_-]?key)$/i;

/** Patterns of secrets, each with its replacement. */
const SECRETS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/gs, REDACTED],
  [/\b(Bearer|Basic)\s+[\w~+/.=-]{8,}/gi, `$1 ${REDACTED}`],
  [/\beyJ[\w-]{5,}\.[\w-]+\.[\w-]*/g, REDACTED],
  [/\b(?:sk|pk|rk|ghp|gho|ghs|xox[abpr]|glpat|wrt)[-_][\w-]{12,}/g, REDACTED],
  [/\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g, REDACTED],
  [/(\b[a-z][a-z0-9+.-]*:\/\/[^\s/:@]*:)[^\s/@]+@/gi, `$1${REDACTED}@`],
  [
    /((?:password|passphrase|secret|token|api[_-]?key|access[_-]?key)["']?\s*[:=]\s*["']?)[^\s"',;&]+/gi,
    `$1${REDACTED}`,
  ],
];

/** Returns messages as JSON in the format of the GenAI conventions, redacted and truncated. */
export function capturedInput(messages: readonly ChatMessage[]): string {
  return fitting(
    messages.map(({ role, parts }) => ({ role, parts: parts.map(capturedPart) })),
    MAX_BYTES,
  );
}

/** Returns an answer as JSON in the format of the GenAI conventions, redacted and truncated. */
export function capturedOutput({ text, toolUses, endReason }: ChatAnswer): string {
  const parts = [
    ...(text === '' ? [] : [{ type: 'text', content: cut(redacted(text)) }]),
    ...toolUses.map((use) => capturedPart({ type: 'tool_use', ...use })),
  ];
  return fitting([{ role: 'assistant', parts, finish_reason: endReason }], MAX_BYTES);
}

function capturedPart(part: ChatPart): object {
  switch (part.type) {
    case 'text':
      return { type: 'text', content: cut(redacted(part.text)) };
    case 'tool_use': {
      const { id, tool: name, argumentsJson } = part;
      return { type: 'tool_call', id, name, arguments: cut(redacted(argumentsJson)) };
    }
    case 'tool_result':
      return { type: 'tool_call_response', id: part.id, response: cut(redacted(part.content)) };
    case 'image':
      return { type: 'uri', modality: 'image', uri: '[omitted]' };
    case 'document':
      return { type: 'uri', modality: 'document', uri: '[omitted]' };
  }
}

/**
 * Returns as JSON the newest messages that fit `maxBytes`. If older messages are omitted, the first element is a
 * message with their number.
 */
function fitting(messages: readonly object[], maxBytes: number): string {
  const kept: string[] = [];
  let bytes = 0;
  for (const message of messages.toReversed()) {
    const json = JSON.stringify(message);
    bytes += Buffer.byteLength(json) + 1;
    if (bytes > maxBytes) break;
    kept.unshift(json);
  }
  const left = messages.length - kept.length;
  if (left > 0) {
    const content = `[${left} messages omitted]`;
    kept.unshift(JSON.stringify({ role: 'system', parts: [{ type: 'text', content }] }));
  }
  return `[${kept.join(',')}]`;
}

function cut(text: string): string {
  if (text.length <= MAX_TEXT) return text;
  return `${text.slice(0, MAX_TEXT).toWellFormed()}… [${text.length - MAX_TEXT} characters omitted]`;
}

/** Returns a text with its secrets redacted; in JSON, the values of fields with secret names are redacted, too. */
function redacted(text: string): string {
  const known = /^\s*[[{]/.test(text) ? redactedJson(text) : undefined;
  return SECRETS.reduce((rest, [form, kept]) => rest.replace(form, kept), known ?? text);
}

function redactedJson(text: string): string | undefined {
  try {
    return JSON.stringify(
      JSON.parse(text, (name, value: unknown) => (SECRET_NAME.test(name) ? REDACTED : value)),
    );
  } catch {
    return undefined;
  }
}
