const RUN = /\p{White_Space}+/gu;
const ONE = /^\p{White_Space}$/u;

/**
 * Every run of Unicode White_Space as one space, none at either end (TG-4). The Unicode property,
 * not the JavaScript class: U+0085 belongs to it and U+FEFF does not.
 */
export function foldWhiteSpace(text: string): string {
  const folded = text.replace(RUN, ' ');
  return folded.slice(folded.startsWith(' ') ? 1 : 0, folded.endsWith(' ') ? -1 : undefined);
}

/** The text without Unicode White_Space at either end (TG-3). */
export function trimWhiteSpace(text: string): string {
  let start = 0;
  let end = text.length;
  // Counted by hand: a pattern anchored at the end takes quadratic time on long inner runs.
  while (start < end && ONE.test(text.charAt(start))) start += 1;
  while (end > start && ONE.test(text.charAt(end - 1))) end -= 1;
  return text.slice(start, end);
}
