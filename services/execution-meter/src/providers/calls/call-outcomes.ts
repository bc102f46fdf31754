import type { WritError } from '@writ/kernel';
import type { ChatAnswer } from '../../domain/chat/chat.ts';
import type { CallFailure } from '../../domain/chat/failure.ts';
import type { Balance, Breach } from '../../domain/ledger/balance.ts';
import type { Hold } from '../../domain/ledger/entry.ts';
import type { Spending } from '../../domain/ledger/spending.ts';
import type { StoredCall } from '../../store/calls.ts';
import type { StoredTab } from '../../store/tabs.ts';

/** An attempt that is on the tab and may be sent. */
export interface OpenAttempt {
  readonly tab: StoredTab;
  readonly call: StoredCall;
  readonly attempt: number;
  readonly hold: Hold;
  readonly startedAt: Date;
}

/** What came of the wish to make an attempt. */
export type Opening =
  | { readonly type: 'opened'; readonly open: OpenAttempt }
  /** The call had its outcome already. */
  | { readonly type: 'recorded'; readonly call: StoredCall }
  /** Another replica is making it. */
  | { readonly type: 'elsewhere' }
  /** It fits only if the prompt is counted, or not even then; nothing was written. */
  | { readonly type: 'uncounted' }
  /** A cap refuses it. */
  | {
      readonly type: 'refused';
      readonly breach: Breach;
      /** Output tokens that would fit. */
      readonly fits: bigint;
      readonly ended: EndedCall;
    }
  /** Between two attempts something forbade the next one. */
  | { readonly type: 'stopped'; readonly error: WritError; readonly ended: EndedCall };

/** Where a call stands after a commit, with the accounts that it is booked to. */
export interface EndedCall {
  readonly tab: StoredTab;
  readonly call: StoredCall;
  readonly levels: readonly Balance[];
}

/** How an attempt ended. */
export interface AttemptEnd {
  readonly spent: Spending;
  /** `ok`, `interrupted` or a stop reason, for the event. */
  readonly status: string;
  readonly warnings: readonly string[];
}

/** How a call ends with its last attempt; with neither answer nor failure it was interrupted. */
export interface CallConclusion extends AttemptEnd {
  readonly answer?: ChatAnswer;
  readonly failure?: CallFailure;
}
