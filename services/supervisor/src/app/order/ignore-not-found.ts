import { NotFoundError } from '@writ/kernel';

/** What a peer never heard of needs no ending there. */
export async function unlessUnknown<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  }
}
