import {
  type Approval,
  ApprovalKind,
  type ArgumentCap,
} from '@writ/contracts/writ/approval/v1/approval_pb';
import { InvalidRequestError, type JsonObject, parseUsd } from '@writ/kernel';

/** The answer of a person to an approval. */
export type HumanAnswer =
  | { readonly kind: 'approve' }
  | { readonly kind: 'edit'; readonly argumentsJson: string }
  | { readonly kind: 'reject' }
  /**
   * The person states what a call with an unknown outcome did: `resultJson` is its result, or undefined when it was not
   * executed.
   */
  | { readonly kind: 'resolve'; readonly resultJson: string | undefined };

/** An approver: a person at the terminal, or a program that simulates one. */
export interface Human {
  /** How approvals are answered, such as `capped at 800 USD`; shown in the notice that the approver is simulated. */
  readonly description: string;
  /** Whether a person answers; only a person can correct a rejected answer. */
  readonly isPerson: boolean;
  /**
   * Answers an approval; undefined leaves it open for another approver.
   *
   * @throws the reason of `signal` when it aborts, because the approval is no longer pending
   */
  answer(approval: Approval, signal: AbortSignal): Promise<HumanAnswer | undefined>;
  /** Releases the terminal. */
  close?(): void;
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
    const nanoUsd = parseUsd(option.slice('cap:'.length), '--human cap');
    if (nanoUsd > 0n) return capAt(Number(nanoUsd) / 1e9);
    throw new InvalidRequestError('INVALID_OPTION', '--human cap must be greater than zero.', {
      field: '--human',
    });
  }
  throw new InvalidRequestError(
    'INVALID_OPTION',
    `--human must be approve, reject, cap:USD or ask, not ${JSON.stringify(option)}.`,
    { field: '--human' },
  );
}

/** The simulated approver without a terminal. */
export const simulatedApprover = (): Human => capAt(AUTOMATIC_CAP_USD);

const approveUpToOwnCap = simulated("approved, up to the approver's own cap", (approval) => {
  const caps = exceededCaps(approval);
  if (caps.length === 0) return { kind: 'approve' };
  return edit(approval, Object.fromEntries(caps.map((c) => [c.argument, Number(c.maxJson)])));
});

const rejectAll = simulated('rejected', () => ({ kind: 'reject' }));

function capAt(usd: number): Human {
  return simulated(`capped at ${usd} USD`, (approval) =>
    numberAt(approval, AMOUNT) > usd ? edit(approval, { [AMOUNT]: usd }) : { kind: 'approve' },
  );
}

/**
 * Creates a simulated approver. It leaves approvals that ask for the outcome of a call open, because a program cannot
 * know that outcome.
 */
function simulated(description: string, answer: (approval: Approval) => HumanAnswer): Human {
  return {
    description,
    isPerson: false,
    answer: async (approval) => (isAboutAction(approval) ? answer(approval) : undefined),
  };
}

/** Whether an approval asks for permission to execute an action. Other approvals ask for the outcome of a call. */
export function isAboutAction({ kind }: Approval): boolean {
  return kind !== ApprovalKind.RESOLVE;
}

/** An edit of the proposed arguments. */
export function edit(approval: Approval, changes: JsonObject): HumanAnswer {
  return { kind: 'edit', argumentsJson: JSON.stringify({ ...argumentsOf(approval), ...changes }) };
}

/** The caps of the approver that the proposed arguments exceed. */
function exceededCaps(approval: Approval): ArgumentCap[] {
  return approval.caps.filter((cap) => numberAt(approval, cap.argument) > Number(cap.maxJson));
}

/** The proposed arguments of the action; empty for an action without arguments. */
export function argumentsOf({ action: proposed }: Pick<Approval, 'action'>): JsonObject {
  const action = proposed?.kind;
  const isCall = action?.case === 'tool' || action?.case === 'clientTool';
  return isCall ? (JSON.parse(action.value.argumentsJson) as JsonObject) : {};
}

function numberAt(approval: Approval, argument: string): number {
  const value = argumentsOf(approval)[argument];
  return typeof value === 'number' ? value : Number.NEGATIVE_INFINITY;
}
