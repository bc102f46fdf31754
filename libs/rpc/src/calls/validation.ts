import { create, type DescMessage, type Message } from '@bufbuild/protobuf';
import { pathToString } from '@bufbuild/protobuf/reflect';
import { createValidator, type Violation } from '@bufbuild/protovalidate';
import { InternalError } from '@writ/kernel';
import { truncate } from '../errors/error-details.ts';
import { InvalidFieldsError } from '../errors/invalid-fields-error.ts';

/** Further violations are counted but not listed: the status must fit into headers. */
const MAX_VIOLATIONS = 16;
/** Longest path of a field, in characters, because keys of maps are chosen by the caller (BD-1). */
const MAX_PATH = 128;

/** Shared by all servers of a process; caches the compiled rules. */
const validator = createValidator({ regexMatch: matches });

const patterns = new Map<string, RegExp>();

/**
 * Matches a pattern of the contracts with the regular expressions of JavaScript. The patterns contain only character
 * classes with bounded repetition, which have the same meaning in RE2, do not backtrack, and run faster in JavaScript
 * than in the RE2 port.
 */
function matches(pattern: string, against: string): boolean {
  let compiled = patterns.get(pattern);
  if (compiled === undefined) {
    compiled = new RegExp(pattern, 'u');
    patterns.set(pattern, compiled);
  }
  return compiled.test(against);
}

/**
 * Compiles the rules of `schemas` before the first call, because the compilation takes longer than many deadlines.
 */
export function warmValidation(schemas: Iterable<DescMessage>): void {
  for (const schema of new Set(schemas)) validator.validate(schema, create(schema));
}

/**
 * Validates `message` against the rules of its contract.
 * @throws InvalidFieldsError INVALID_FIELD naming the first invalid field, with `metadata.field` and
 *   `metadata.rule`; InternalError INVALID_VALIDATION_RULES when the rules cannot be evaluated
 */
export function assertValid(schema: DescMessage, message: Message): void {
  const result = validator.validate(schema, message);
  if (result.kind === 'valid') return;
  if (result.kind === 'error') {
    throw new InternalError(
      'INVALID_VALIDATION_RULES',
      `The rules of ${schema.typeName} cannot be evaluated.`,
      { message_type: schema.typeName },
      { cause: result.error },
    );
  }
  throw invalidFields(result.violations);
}

function invalidFields(violations: readonly Violation[]): InvalidFieldsError {
  const found = violations.map((violation) => ({
    field: truncate(pathToString(violation.field), MAX_PATH),
    description: violation.forKey ? `key ${violation.message}` : violation.message,
    rule: violation.ruleId,
  }));
  const [first, ...others] = found;
  const sentence = [first?.field, first?.description].filter(Boolean).join(': ');
  return new InvalidFieldsError(
    found.slice(0, MAX_VIOLATIONS).map(({ field, description }) => ({ field, description })),
    'INVALID_FIELD',
    others.length === 0 ? sentence : `${sentence} (and ${others.length} more)`,
    { field: first?.field ?? '', rule: first?.rule ?? '' },
  );
}
