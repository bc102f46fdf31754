/**
 * Whether a platform serves the console, which may be missing, as in a checkout in which it is not built (PE-2). False if it
 * cannot be asked, for example because its certificate is of a private authority.
 */
export async function hasConsole(edgeUrl: string): Promise<boolean> {
  try {
    const { ok, headers } = await fetch(edgeUrl);
    return ok && (headers.get('content-type') ?? '').startsWith('text/html');
  } catch {
    return false;
  }
}
