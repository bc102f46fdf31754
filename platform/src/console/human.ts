import type { Approval } from '@writ/contracts/writ/approval/v1/approval_pb';
import { InvalidRequestError, type JsonObject, parseUsd } from '@writ/kernel';

/** What a person says to an escalated action. */
export type HumanAnswer =
  | { readonly kind: 'approve' }
  | { readonly kind: 'edit'; readonly argumentsJson: string }
  | { readonly kind: 'reject' };

/** Somebody who answers approvals: a person at the terminal, or a rule that stands in for one. */
export interface Human {
  /** One line that says how approvals will be answered. */
  readonly description: string;
  /** Whether a refused answer can be put again, which only a person can do. */
  readonly canCorrect: boolean;
  answer(approval: Approval): Promise<HumanAnswer>;
}

const AMOUNT = 'amount_usd';
const STAND_IN_CAP_USD = 800;

/**
 * Reads the option `--human`: `approve` (up to the approver's own cap), `reject`, `cap:USD`, or `ask`.
 *
 * @throws InvalidRequestError that names the option and the forms that it takes
 */
export function readHuman(option: string, ask: () => Human): Human {
  if (option === 'ask') return ask();
  if (option === 'approve') return approveUpToOwnCap;
  if (option === 'reject') return rejectAll;
  if (option.startsWith('cap:')) {
    const cap = Number(parseUsd(option.slice('cap:'.length), '--human cap')) / 1e9;
    return capAt(cap);
  }
  throw new InvalidRequestError(
    'INVALID_OPTION',
    `--human is approve, reject, cap:USD or ask, not ${JSON.stringify(option)}.`,
    { field: '--human' },
  );
}

/** Stands in for a person where there is no terminal. */
export const standIn = (): Human => capAt(STAND_IN_CAP_USD);

const approveUpToOwnCap: Human = {
  description: "approved, up to the approver's own cap",
  canCorrect: false,
  answer: async (approval) => {
    const caps = approval.caps.filter(
      (cap) => numberAt(approval, cap.argument) > Number(cap.maxJson),
    );
    if (caps.length === 0) return { kind: 'approve' };
    return edit(approval, Object.fromEntries(caps.map((c) => [c.argument, Number(c.maxJson)])));
  },
};

const rejectAll: Human = {
  description: 'rejected',
  canCorrect: false,
  answer: async () => ({ kind: 'reject' }),
};

function capAt(usd: number): Human {
  return {
    description: `capped at ${usd} USD`,
    canCorrect: false,
    answer: async (approval) =>
      numberAt(approval, AMOUNT) > usd ? edit(approval, { [AMOUNT]: usd }) : { kind: 'approve' },
  };
}

/** An edit of the proposed arguments. */
export function edit(approval: Approval, changes: JsonObject): HumanAnswer {
  return { kind: 'edit', argumentsJson: JSON.stringify({ ...argumentsOf(approval), ...changes }) };
}

/** The proposed arguments of the action that waits; empty for an action without. */
function argumentsOf(approval: Approval): JsonObject {
  const action = approval.action?.kind;
  return action?.case === 'tool' ? (JSON.parse(action.value.argumentsJson) as JsonObject) : {};
}

function numberAt(approval: Approval, argument: string): number {
  const value = argumentsOf(approval)[argument];
  return typeof value === 'number' ? value : Number.NEGATIVE_INFINITY;
}
