/**
 * The URIs among the alternative names of a certificate, as Node prints them. Names that Node has to
 * quote are none that Writ gives, and could be made to look like others: then there are no URIs.
 */
export function uriNames(subjectAltName: string | undefined): readonly string[] {
  if (subjectAltName === undefined || subjectAltName.includes('"')) return [];
  return subjectAltName.split(', ').flatMap((name) => /^URI:(.+)$/.exec(name)?.[1] ?? []);
}
