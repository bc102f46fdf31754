const RUN = /\p{White_Space}+/gu;
const ONE = /^\p{White_Space}$/u;

/**
 * Folds every run of Unicode White_Space into one space and trims both ends (TG-4). The Unicode property
 * differs from the JavaScript class: it includes U+0085 and excludes U+FEFF.
 */
export function foldWhiteSpace(text: string): string {
  const folded = text.replace(RUN, ' ');
  return folded.slice(folded.startsWith(' ') ? 1 : 0, folded.endsWith(' ') ? -1 : undefined);
}

/** Trims Unicode White_Space at both ends (TG-3). */
export function trimWhiteSpace(text: string): string {
  let start = 0;
  let end = text.length;
  // A loop, because a pattern anchored at the end needs quadratic time for long runs of white space inside the text.
  while (start < end && ONE.test(text.charAt(start))) start += 1;
  while (end > start && ONE.test(text.charAt(end - 1))) end -= 1;
  return text.slice(start, end);
}
