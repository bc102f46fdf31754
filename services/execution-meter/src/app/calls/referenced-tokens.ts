import { InvalidRequestError, NotFoundError } from '@writ/kernel';
import type { MeterContext } from '../../context.ts';
import type { ModelEntry } from '../../domain/catalog/catalog.ts';
import type { References } from '../../domain/chat/chat.ts';
import { knownIds } from '../../store/responses.ts';
import type { StoredTab } from '../../store/tabs.ts';
import { providerIdOf } from './call-planner.ts';

/** Maximum number of ids that one request may refer to. */
const MAX_IDS = 10_000;

/**
 * Returns the number of tokens that the provider adds to the prompt for the ids in a request: the tokens of the
 * response that the request continues, and of the earlier answers whose stored items it references. Accepts only ids
 * that this session has received from the provider account of the model (AP-2).
 * @throws NotFoundError RESPONSE_NOT_FOUND; InvalidRequestError NATIVE_FIELD_NOT_ALLOWED
 */
export async function referencedTokens(
  { store }: MeterContext,
  tab: StoredTab,
  model: ModelEntry,
  { previousId, items }: References,
): Promise<bigint> {
  const ids = [
    ...new Set([...(previousId === undefined ? [] : [previousId]), ...items.map(({ id }) => id)]),
  ];
  if (ids.length === 0) return 0n;
  if (ids.length > MAX_IDS) {
    throw new InvalidRequestError(
      'NATIVE_FIELD_NOT_ALLOWED',
      `input refers to ${ids.length} ids; at most ${MAX_IDS} are permitted.`,
      { field: 'input' },
    );
  }
  const provider = providerIdOf(model);
  const known = (await knownIds(store.db, tab, ids)).filter((row) => row.provider === provider);
  const byId = new Map(known.map((row) => [row.id, row]));
  const unknown = ids.find((id) => !byId.has(id));
  if (unknown !== undefined) throw notFound(unknown, unknown === previousId);
  const stored = items.flatMap(({ id, stored: isStored }) =>
    isStored ? (byId.get(id) ?? []) : [],
  );
  const outputs = new Map(stored.map(({ call, output }) => [call, output]));
  const previous = previousId === undefined ? 0n : (byId.get(previousId)?.total ?? 0n);
  return [...outputs.values()].reduce((sum, output) => sum + output, previous);
}

function notFound(id: string, isPrevious: boolean): NotFoundError {
  const what = /^[\w.:-]{1,128}$/.test(id) ? ` ${id}` : '';
  return new NotFoundError(
    'RESPONSE_NOT_FOUND',
    `The session has received no ${isPrevious ? 'response' : 'item'}${what} from the provider of this model; send its content.`,
    { field: isPrevious ? 'previous_response_id' : 'input' },
  );
}
