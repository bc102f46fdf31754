/**
 * Returns the URIs among the subject alternative names of a certificate, as Node prints them. Returns an empty list if
 * Node quotes a name: Writ does not issue names that need quotes, and a quoted name could imitate another name.
 */
export function uriNames(subjectAltName: string | undefined): readonly string[] {
  if (subjectAltName === undefined || subjectAltName.includes('"')) return [];
  return subjectAltName.split(', ').flatMap((name) => /^URI:(.+)$/.exec(name)?.[1] ?? []);
}
