import type { SideEffect } from './tool.ts';

/**
 * State of a call (TG-5). `none`: no record. `running`: intent is recorded and the tool runs. `interrupted`: intent is
 * recorded and the tool does not run; a call of a destructive tool is in this state only if its process ended or could
 * not write the outcome. Calls in the other states have a receipt.
 */
export type CallState =
  | 'none'
  | 'running'
  | 'interrupted'
  | 'refused'
  | 'ok'
  | 'error'
  | 'unknown'
  | 'burnt';

/**
 * How the execution of a tool ended. `lost`: no response arrived in time, so it is unknown whether the tool took
 * effect. `interrupted`: the execution was cancelled and returned no result; the tool may have taken effect.
 */
export type Ending = 'ok' | 'failed' | 'lost' | 'interrupted';

/** An event in the life of a call. */
export type CallEvent =
  /** A request under a valid writ; `admitted` is the result of the checks. */
  | { readonly kind: 'call'; readonly admitted: boolean }
  | { readonly kind: 'end'; readonly ending: Ending }
  /** The process that ran the tool died. */
  | { readonly kind: 'crash' }
  | { readonly kind: 'void' }
  | { readonly kind: 'resolve'; readonly done: boolean };

/**
 * Effect of an event. `execute`: run the tool. `record`: write the receipt of the next state. `keep`: do nothing.
 * `join`: wait for the execution of the tool that is in progress. `answer`: return the recorded outcome. `reject`: the
 * event is not valid in this state.
 */
type Effect = 'execute' | 'record' | 'keep' | 'join' | 'answer' | 'reject';

/** The state after an event, and its effect. */
export interface Transition {
  readonly next: CallState;
  readonly effect: Effect;
}

/**
 * State machine of one tool call. A destructive tool is executed at most once. An outcome is recorded once; the only
 * outcome that can be replaced is `unknown`, and only by a resolution (TG-1, TG-5, TG-8).
 */
export function transition(state: CallState, event: CallEvent, sideEffect: SideEffect): Transition {
  switch (state) {
    case 'none':
      return fromNone(event);
    case 'running':
      return fromRunning(event, sideEffect);
    case 'interrupted':
      return fromInterrupted(event, sideEffect);
    case 'unknown':
      if (event.kind === 'resolve') return record(event.done ? 'ok' : 'error');
      return settled(state, event);
    case 'refused':
    case 'ok':
    case 'error':
    case 'burnt':
      return settled(state, event);
  }
}

function fromNone(event: CallEvent): Transition {
  switch (event.kind) {
    case 'call':
      return event.admitted ? { next: 'running', effect: 'execute' } : record('refused');
    case 'void':
      return record('burnt');
    case 'crash':
      return { next: 'none', effect: 'keep' };
    case 'end':
    case 'resolve':
      return { next: 'none', effect: 'reject' };
  }
}

function fromRunning(event: CallEvent, sideEffect: SideEffect): Transition {
  switch (event.kind) {
    case 'call':
    case 'void':
      return { next: 'running', effect: 'join' };
    case 'end':
      return ended(event.ending, sideEffect);
    case 'crash':
      return ended('interrupted', sideEffect);
    case 'resolve':
      return { next: 'running', effect: 'reject' };
  }
}

function ended(ending: Ending, sideEffect: SideEffect): Transition {
  switch (ending) {
    case 'ok':
      return record('ok');
    case 'failed':
      return record('error');
    case 'lost':
      return record(uncertainState(sideEffect));
    case 'interrupted':
      return sideEffect === 'destructive'
        ? record('unknown')
        : { next: 'interrupted', effect: 'keep' };
  }
}

function fromInterrupted(event: CallEvent, sideEffect: SideEffect): Transition {
  switch (event.kind) {
    case 'call':
      // The checks passed when the intent was recorded and are not repeated; beginCall checks the expiry of the writ
      // and the freezes again.
      if (sideEffect !== 'destructive') return { next: 'running', effect: 'execute' };
      return record('unknown');
    case 'void':
      return record(uncertainState(sideEffect));
    case 'crash':
      return { next: 'interrupted', effect: 'keep' };
    case 'end':
    case 'resolve':
      return { next: 'interrupted', effect: 'reject' };
  }
}

/** State of a call that began and will not be repeated: only a read-only tool has certainly changed nothing. */
function uncertainState(sideEffect: SideEffect): 'error' | 'unknown' {
  return sideEffect === 'read_only' ? 'error' : 'unknown';
}

function settled(state: CallState, event: CallEvent): Transition {
  switch (event.kind) {
    case 'call':
    case 'void':
      return { next: state, effect: 'answer' };
    case 'crash':
      return { next: state, effect: 'keep' };
    case 'end':
    case 'resolve':
      return { next: state, effect: 'reject' };
  }
}

function record(next: CallState): Transition {
  return { next, effect: 'record' };
}
