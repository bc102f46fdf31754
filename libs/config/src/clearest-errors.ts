import type { ErrorObject } from 'ajv/dist/2020.js';
import { type Schema, schemasAt } from './schemas-at.ts';

/**
 * Of everything a validator complains about, what helps a person: where a value fits none of several
 * forms, only the complaints about the form it comes nearest to; and no echoes of other errors.
 */
export function clearestErrors(root: Schema, errors: readonly ErrorObject[]): ErrorObject[] {
  const union = errors
    .filter(isUnion)
    .toSorted((a, b) => a.instancePath.length - b.instancePath.length)
    .find((candidate) => !errors.some((other) => contains(root, other, candidate)));
  if (union === undefined) return errors.filter((error) => !isEcho(error));
  const rest = errors.filter((error) => error !== union && !contains(root, union, error));
  return [...nearestForm(root, union, errors), ...clearestErrors(root, rest)].toSorted(
    (a, b) => errors.indexOf(a) - errors.indexOf(b),
  );
}

/** Whether another error of the list says the same, with more use. */
function isEcho({ keyword, propertyName }: ErrorObject): boolean {
  return keyword === 'if' || propertyName !== undefined;
}

function isUnion(error: ErrorObject): boolean {
  return error.keyword === 'anyOf' || error.keyword === 'oneOf';
}

function branchesOf(union: ErrorObject): readonly unknown[] {
  return isUnion(union) && Array.isArray(union.schema) ? union.schema : [];
}

/** The complaints about the one form that fits best, or the union's own when none stands out. */
function nearestForm(
  root: Schema,
  union: ErrorObject,
  errors: readonly ErrorObject[],
): ErrorObject[] {
  if (Array.isArray((union.params as { passingSchemas?: unknown }).passingSchemas)) return [union];
  const candidates = branchesOf(union)
    .map((branch) => errors.filter((error) => isFoundBy(root, branch, union, error)))
    .filter((found) => found.length > 0)
    .map((found) => ({ found, misfit: misfitOf(union, found) }))
    .toSorted((a, b) => a.misfit - b.misfit);
  const [best, second] = candidates;
  if (best === undefined || best.misfit >= WRONG_TAG) return [union];
  if (second !== undefined && second.misfit === best.misfit) return [union];
  return clearestErrors(root, best.found);
}

/** More than any number of smaller complaints: the value is another kind of thing altogether. */
const WRONG_KIND = 1_000_000;
const WRONG_TAG = 1000;

function misfitOf(union: ErrorObject, errors: readonly ErrorObject[]): number {
  let misfit = 0;
  for (const { keyword, instancePath } of errors) {
    const depth = instancePath.split('/').length - union.instancePath.split('/').length;
    if (depth === 0 && (keyword === 'type' || keyword === 'const' || keyword === 'enum')) {
      return WRONG_KIND;
    }
    // A fixed word one level down is how documents say which form they mean.
    misfit += depth === 1 && keyword === 'const' ? WRONG_TAG : depth === 0 ? 10 : 1;
  }
  return misfit;
}

/** Whether `error` was found while trying one of the forms of `union`. */
function contains(root: Schema, union: ErrorObject, error: ErrorObject): boolean {
  return branchesOf(union).some((branch) => isFoundBy(root, branch, union, error));
}

/** Whether `error` was found while trying the form `branch` of `union`. */
function isFoundBy(root: Schema, branch: unknown, union: ErrorObject, error: ErrorObject): boolean {
  const from = union.instancePath;
  const path = error.instancePath;
  if (error === union || (path !== from && !path.startsWith(`${from}/`))) return false;
  return schemasAt(root, branch, path.slice(from.length).split('/').slice(1)).has(
    error.parentSchema,
  );
}
