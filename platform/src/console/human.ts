import type { Approval } from '@writ/contracts/writ/approval/v1/approval_pb';
import { InvalidRequestError, type JsonObject, parseUsd } from '@writ/kernel';

/** The answer of a person to an escalated action. */
export type HumanAnswer =
  | { readonly kind: 'approve' }
  | { readonly kind: 'edit'; readonly argumentsJson: string }
  | { readonly kind: 'reject' };

/** An approver: a person at the terminal, or an automatic rule. */
export interface Human {
  /** One-line description of how approvals are answered. */
  readonly description: string;
  /** Whether a rejected answer can be corrected, which only a person can do. */
  readonly canCorrect: boolean;
  answer(approval: Approval): Promise<HumanAnswer>;
}

const AMOUNT = 'amount_usd';
const AUTOMATIC_CAP_USD = 800;

/**
 * Reads the option `--human`: `approve` (up to the approver's own cap), `reject`, `cap:USD`, or `ask`.
 *
 * @throws InvalidRequestError that names the option and its valid values
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

/** The automatic approver without a terminal. */
export const automaticApprover = (): Human => capAt(AUTOMATIC_CAP_USD);

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

/** The proposed arguments of the action; empty for an action without arguments. */
function argumentsOf(approval: Approval): JsonObject {
  const action = approval.action?.kind;
  return action?.case === 'tool' ? (JSON.parse(action.value.argumentsJson) as JsonObject) : {};
}

function numberAt(approval: Approval, argument: string): number {
  const value = argumentsOf(approval)[argument];
  return typeof value === 'number' ? value : Number.NEGATIVE_INFINITY;
}
