/**
 * Whether `text` fits `pattern`, in which `*` stands for any characters, none included, and every
 * other character for itself. Runs in time proportional to the product of the lengths at worst,
 * so a name chosen by a worker cannot stall a review.
 */
export function matchesGlob(pattern: string, text: string): boolean {
  let at = 0;
  let inPattern = 0;
  let starAt = -1;
  let resumeAt = 0;
  while (at < text.length) {
    const symbol = pattern[inPattern];
    if (symbol === '*') {
      starAt = inPattern;
      resumeAt = at;
      inPattern += 1;
    } else if (symbol === text[at]) {
      inPattern += 1;
      at += 1;
    } else if (starAt >= 0) {
      // The last star takes one character more, and the rest of the pattern is tried again.
      resumeAt += 1;
      at = resumeAt;
      inPattern = starAt + 1;
    } else {
      return false;
    }
  }
  while (pattern[inPattern] === '*') inPattern += 1;
  return inPattern === pattern.length;
}

/** Whether a pattern names exactly one thing. */
export function isExact(pattern: string): boolean {
  return !pattern.includes('*');
}
