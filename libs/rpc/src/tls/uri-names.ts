/**
 * Returns the URIs among the subject alternative names of a certificate, as Node prints them. Returns
 * none when Node quotes a name: Writ issues no such names, and they could imitate others.
 */
export function uriNames(subjectAltName: string | undefined): readonly string[] {
  if (subjectAltName === undefined || subjectAltName.includes('"')) return [];
  return subjectAltName.split(', ').flatMap((name) => /^URI:(.+)$/.exec(name)?.[1] ?? []);
}
