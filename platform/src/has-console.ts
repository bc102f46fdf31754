/**
 * Returns whether a platform serves the console; a checkout without a built console does not (PE-2). Returns false if
 * the request fails, for example because the certificate was issued by a private authority.
 */
export async function hasConsole(edgeUrl: string): Promise<boolean> {
  try {
    const { ok, headers } = await fetch(edgeUrl);
    return ok && (headers.get('content-type') ?? '').startsWith('text/html');
  } catch {
    return false;
  }
}
