/** The `@` and domain of an email address; the group is the preceding local part. */
const AT_DOMAIN = /@(?<=([\p{L}\p{N}._%+-]+)@)[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+/gu;

/**
 * Replaces each email address in a text. The time is linear in the length of the text: the search starts at each `@`,
 * because a pattern that starts with the local part would read a long word again from each of its characters.
 */
export function redactEmails(text: string, replacement: string): string {
  let redacted = '';
  let end = 0;
  for (const { 0: domain, 1: local = '', index } of text.matchAll(AT_DOMAIN)) {
    // A local part does not include the domain of the previous address.
    const start = Math.max(end, index - local.length);
    if (start === index) continue;
    redacted += text.slice(end, start) + replacement;
    end = index + domain.length;
  }
  return redacted + text.slice(end);
}
