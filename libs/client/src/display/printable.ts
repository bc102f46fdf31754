/**
 * Control characters except line feed and tab; line and paragraph separators; and explicit bidirectional formatting
 * characters (embeddings, overrides and isolates). With them, a model or tool could change what a terminal shows.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these characters are what is replaced.
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/**
 * Returns text that is safe to print to a terminal: control characters except line feed and tab; line and paragraph
 * separators; and explicit bidirectional formatting characters are replaced by their code, such as `\u001b`.
 */
export function printable(text: string): string {
  return text.replaceAll(
    CONTROL,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
