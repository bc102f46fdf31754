/** Limits of a partial answer, in characters. */
const MAX_PART = 2_000;
const MAX_TEXT = 8_000;

/** Joins the latest parts of a partial answer, up to MAX_TEXT characters; truncates each part to MAX_PART (SB-4). */
export function partialText(parts: readonly string[]): string {
  const kept: string[] = [];
  let length = 0;
  for (const part of parts.toReversed()) {
    const text = part.slice(0, MAX_PART).toWellFormed();
    length += text.length;
    if (length > MAX_TEXT) break;
    kept.unshift(text);
  }
  return kept.join('\n\n');
}
