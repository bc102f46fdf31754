/**
 * Whether `text` matches `pattern`, in which `*` matches any characters, including none, and every
 * other character itself. The worst-case time is proportional to the product of the lengths, so a
 * name chosen by a worker cannot stall a review.
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
      // Backtrack: the last star matches one more character.
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

/** Whether a pattern matches exactly one name. */
export function isExact(pattern: string): boolean {
  return !pattern.includes('*');
}
