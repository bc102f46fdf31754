import { PermissionDeniedError, UnauthenticatedError } from '@writ/kernel';
import { expect, it } from 'vitest';
import { needsNewWrit } from './retry-with-new-credentials.ts';

it('requests a new writ when the writ has expired or its signing key is not known yet (TG-1, SV-6)', () => {
  const invalid = (check: string) => new PermissionDeniedError('WRIT_INVALID', 'No.', { check });
  expect(needsNewWrit(new PermissionDeniedError('WRIT_EXPIRED', 'Old.'))).toBe(true);
  expect(needsNewWrit(invalid('kid'))).toBe(true);
  expect(needsNewWrit(invalid('signature'))).toBe(false);
  expect(needsNewWrit(new UnauthenticatedError('TOKEN_INVALID', 'No.', { check: 'kid' }))).toBe(
    false,
  );
});
