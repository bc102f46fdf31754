import type { ErrorObject } from 'ajv/dist/2020.js';
import { type Schema, schemasAt } from './schemas-at.ts';

/**
 * Reduces validator errors to those that help a reader: when a value matches none of several alternatives, only the
 * errors of the closest alternative remain. An error is dropped if another error reports the same problem in more
 * detail.
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

/** Whether another error of the list reports the same problem in more detail. */
function isEcho({ keyword, propertyName }: ErrorObject): boolean {
  return keyword === 'if' || propertyName !== undefined;
}

function isUnion(error: ErrorObject): boolean {
  return error.keyword === 'anyOf' || error.keyword === 'oneOf';
}

function branchesOf(union: ErrorObject): readonly unknown[] {
  return isUnion(union) && Array.isArray(union.schema) ? union.schema : [];
}

/**
 * Returns the errors of the closest alternative, or the error of the union when none is closest.
 */
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

/** Outweighs any number of smaller errors: the value has a different type, or is not a permitted constant. */
const WRONG_KIND = 1_000_000;
const WRONG_TAG = 1000;

function misfitOf(union: ErrorObject, errors: readonly ErrorObject[]): number {
  let misfit = 0;
  for (const { keyword, instancePath } of errors) {
    const depth = instancePath.split('/').length - union.instancePath.split('/').length;
    if (depth === 0 && (keyword === 'type' || keyword === 'const' || keyword === 'enum')) {
      return WRONG_KIND;
    }
    // A constant one level down is the tag that selects the alternative.
    misfit += depth === 1 && keyword === 'const' ? WRONG_TAG : depth === 0 ? 10 : 1;
  }
  return misfit;
}

/** Whether `error` was reported while validating one of the alternatives of `union`. */
function contains(root: Schema, union: ErrorObject, error: ErrorObject): boolean {
  return branchesOf(union).some((branch) => isFoundBy(root, branch, union, error));
}

/** Whether `error` was reported while validating the alternative `branch` of `union`. */
function isFoundBy(root: Schema, branch: unknown, union: ErrorObject, error: ErrorObject): boolean {
  const from = union.instancePath;
  const path = error.instancePath;
  if (error === union || (path !== from && !path.startsWith(`${from}/`))) return false;
  return schemasAt(root, branch, path.slice(from.length).split('/').slice(1)).has(
    error.parentSchema,
  );
}
